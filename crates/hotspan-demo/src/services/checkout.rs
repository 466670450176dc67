//! `checkout`: the front, and the only service that customers reach. Its problems are those of the payment provider: slow for
//! some, and charges that fail and are tried again.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Answer, Request, Stores, discount, inventory, order, tax};
use crate::customers::Cart;
use crate::mesh::{Endpoint, Failure, Mesh, Service};
use crate::problems::{Problem, Problems};
use crate::random::{chance, millis_between};
use crate::telemetry::{Kind, Span};

/// Where a cart is bought.
pub(crate) const BUY: Endpoint = Endpoint { service: Service::Checkout, method: "POST", route: "/api/checkout" };
/// Where a cart is looked at.
pub(crate) const CART: Endpoint = Endpoint { service: Service::Checkout, method: "GET", route: "/api/cart" };
/// Where goods are looked for.
pub(crate) const PRODUCTS: Endpoint = Endpoint { service: Service::Checkout, method: "GET", route: "/api/products" };

/// Buys a cart: reserve, price, tax, pay, order.
pub(crate) fn buy(mesh: &Arc<Mesh>, stores: &Arc<Stores>, span: &mut Span, cart: &Arc<Cart>) -> Answer<()> {
    describe(span, cart);
    check_cart(cart)?;
    let request = Request { mesh, stores, span };
    inventory::reserve_remotely(&request, cart)?;
    let discount = discount::ask(&request, cart)?;
    let tax = tax::ask(&request, cart)?;
    let cents = cart.cents().saturating_sub(discount) + tax;
    request.span.set("checkout.total_cents", usize::try_from(cents).unwrap_or(usize::MAX));
    charge_card(mesh.problems(), request.span, cents)?;
    let number = order::place_remotely(&request, cart, cents)?;
    request.span.event("order placed", [("order.number", number.into())]);
    Ok(())
}

/// Shows a cart with its prices: no tax, no order.
pub(crate) fn show_cart(mesh: &Arc<Mesh>, stores: &Arc<Stores>, span: &mut Span, cart: &Arc<Cart>) -> Answer<()> {
    describe(span, cart);
    let request = Request { mesh, stores, span };
    discount::ask(&request, cart)?;
    render_page(cart.items.len());
    Ok(())
}

/// Lists goods with their stock.
pub(crate) fn list_products(mesh: &Arc<Mesh>, stores: &Arc<Stores>, span: &mut Span, cart: &Arc<Cart>) -> Answer<()> {
    span.set("customer.id", cart.customer.as_str());
    let request = Request { mesh, stores, span };
    let stock = inventory::ask_stock(&request)?;
    render_page(stock);
    Ok(())
}

fn describe(span: &mut Span, cart: &Cart) {
    span.set("customer.id", cart.customer.as_str());
    span.set("customer.tier", cart.tier);
    span.set("customer.region", cart.region);
    span.set("cart.items", cart.items.len());
    span.set("cart.value_cents", usize::try_from(cart.cents()).unwrap_or(usize::MAX));
}

/// A cheap check, as any front has.
#[inline(never)]
fn check_cart(cart: &Cart) -> Answer<()> {
    if chance(0.01) {
        let message = format!("the cart of {} has expired", cart.customer);
        return Err(Failure { status: 409, kind: "cart_expired", message });
    }
    Ok(())
}

/// Charges a card; a provider that is busy is asked again.
#[inline(never)]
fn charge_card(problems: &Problems, span: &Span, cents: u64) -> Answer<()> {
    if problems.has(Problem::Retries) && chance(0.125) {
        for _ in 0..2 {
            let mut charge = charge_span(span, cents);
            thread::sleep(millis_between(60.0, 90.0));
            charge.set("http.response.status_code", 503u16);
            charge.fail("busy", "the payment provider is busy");
        }
    }
    let mut charge = charge_span(span, cents);
    let is_slow = problems.has(Problem::Payments) && chance(0.125);
    wait_for_provider(if is_slow { millis_between(300.0, 500.0) } else { millis_between(8.0, 25.0) });
    if chance(0.015) {
        let message = "the payment provider did not answer in 60 ms";
        thread::sleep(millis_between(35.0, 40.0));
        charge.set("http.response.status_code", 504u16);
        charge.fail("timeout", message);
        return Err(Failure { status: 502, kind: "payment_timeout", message: message.to_owned() });
    }
    charge.set("http.response.status_code", 200u16);
    Ok(())
}

/// The payment provider is outside of the shop, so that only the call is seen.
fn charge_span(span: &Span, cents: u64) -> Span {
    let mut charge = span.child("POST", Kind::Client);
    charge.set("http.request.method", "POST");
    charge.set("server.address", "payments.example.com");
    charge.set("server.port", 443u16);
    charge.set("url.full", "https://payments.example.com/v3/charges");
    charge.set("payment.cents", usize::try_from(cents).unwrap_or(usize::MAX));
    charge
}

#[inline(never)]
fn wait_for_provider(time: Duration) {
    thread::sleep(time);
    // Something to do afterwards keeps this function on the stack meanwhile; something of its own keeps it from being merged
    // with functions that do the same.
    std::hint::black_box(("provider", time));
}

/// Some honest work: a page of rows, sorted and escaped.
#[inline(never)]
fn render_page(rows: usize) {
    let mut lines: Vec<String> = (0..rows * 40).map(|row| format!("<li>{:>8}</li>", row * 7919 % 1000)).collect();
    lines.sort();
    std::hint::black_box(lines.join("\n").replace('&', "&amp;"));
}
