//! Pages of HTML that people work with in a browser: plots to zoom and to point at, long tables to scroll, sort and
//! filter. A page is one file with its numbers, its style and its script; it loads nothing else. Tests here check
//! structure and numbers. The scripts were tested in Chromium 156. After a change test a page again;
//! `window.umklapp.panels` gives the panels of a plot.

mod still;

use std::fmt::Write;

use serde_json::Value;

pub(super) use still::{escaped, matrix, table};

/// What a page shows.
pub(super) enum PageContent {
    Plot,
    Table,
}

/// The page of that title over these data. `otherwise` is markup for readers that run no scripts;
/// `made` says how the data were made.
pub(super) fn whole(
    kind: &PageContent,
    title: &str,
    data: &Value,
    otherwise: &str,
    made: Option<&Value>,
) -> String {
    let (script, shown) = match kind {
        PageContent::Plot => (include_str!("plot.js"), "Plot"),
        PageContent::Table => (include_str!("table.js"), "Table"),
    };
    let title = if title.is_empty() { shown.to_string() } else { escaped(title) };
    // No text of the data may end the element that holds them.
    let data = data.to_string().replace('<', "\\u003c");
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"generator\" content=\"Umklapp {}\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main id=\"main\"></main>\n\
         <noscript>{otherwise}</noscript>\n",
        env!("CARGO_PKG_VERSION"),
        include_str!("page.css"),
    );
    if let Some(made) = made {
        let text = serde_json::to_string_pretty(made).unwrap_or_default();
        // Writing to a text cannot fail.
        let _ = writeln!(
            page,
            "<details><summary>How this was made</summary><pre>{}</pre></details>",
            escaped(&text)
        );
    }
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
    );
    page
}

/// The data that a page holds.
#[cfg(test)]
pub(super) fn data_of(page: &str) -> Value {
    let (_, behind) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(behind.split_once("</script>").unwrap().0).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup_and_nothing_is_fetched() {
        let evil = "</script><script>alert(1)</script>\"&";
        for kind in [PageContent::Plot, PageContent::Table] {
            let data = serde_json::json!({ "name": evil });
            let page = whole(&kind, evil, &data, "", Some(&serde_json::json!({ "made": evil })));
            assert_eq!(page.matches("<script").count(), 2, "{page}");
            assert_eq!(page.matches("</script>").count(), 2);
            assert_eq!(data_of(&page), data);
            let words = [
                "http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "XMLHttp", "import(",
                "eval(",
            ];
            for word in words {
                assert!(!page.contains(word), "{word}");
            }
        }
    }
}
