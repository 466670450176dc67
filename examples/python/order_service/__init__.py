"""An order service whose slow requests lead to a line of code."""
