//! A page that leaves its server: read from a file, it has links to the server that it came from.

/// How a link to the same answer in another form begins, as the server writes it: text around it has its quotes escaped.
const RELATIVE: &str = "href=\"?";
/// How the line of those links begins.
const LINKS: &str = "<p>Also as";

/// The same page with links that name the server, whose `base` is as a person gave it. A browser can't say that it asks for a
/// tenant, so that there are no links where one is named.
pub(crate) fn saved_page(page: &str, base: &str, path: &str, tenant: Option<&str>) -> String {
    if tenant.is_some() {
        return page.split_inclusive('\n').filter(|line| !line.starts_with(LINKS)).collect();
    }
    let base = base.replace('&', "&amp;").replace('"', "&quot;");
    page.replace(RELATIVE, &format!("href=\"{base}{path}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "<h1>a</h1>\n<p>Also as <a href=\"?q=a&amp;format=svg\">svg</a></p>\n<text>href=&quot;?</text>\n";

    /// Scenario: a page with links, for whoever asks and for a tenant.
    /// Guarantee: links name the server and nothing else changes; a tenant has none.
    #[test]
    fn links_name_the_server() {
        let saved = saved_page(PAGE, "http://host:4040/a&b", "/api/v1/query", None);
        let link = "href=\"http://host:4040/a&amp;b/api/v1/query?q=a&amp;format=svg\"";
        assert_eq!(saved, PAGE.replace("href=\"?q=a&amp;format=svg\"", link));
        let saved = saved_page(PAGE, "http://host:4040", "/api/v1/query", Some("shop"));
        assert_eq!(saved, "<h1>a</h1>\n<text>href=&quot;?</text>\n");
    }
}
