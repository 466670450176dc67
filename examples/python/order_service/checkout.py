"""Adding up an order."""

import json

from . import profiling
from .tracing import span

# What the tax office publishes: rates by district.
TAX_TABLE = json.dumps(
    [
        {"name": f"district-{number:04}", "rates": {"books": 0.07, "food": 0.05, "toys": 0.19, "clothing": 0.19}}
        for number in range(400)
    ]
)


def checkout(items):
    with span("order.calculate_totals"):
        total = sum(5 + item % 20 for item in range(items))
        return total + calculate_tax(items)


def calculate_tax(items):
    with span("calculate_tax"), profiling.labels_of_span():
        return sum((5 + item % 20) * lookup_tax_rate(item % 400) for item in range(items))


def lookup_tax_rate(district):
    """The problem: it reads the whole table for one number."""
    return parse_tax_table(TAX_TABLE)[district]["rates"]["books"]


def parse_tax_table(document):
    return json.loads(document)
