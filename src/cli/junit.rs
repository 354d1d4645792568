//! Test results in JUnit's XML format, which services for continuous integration show.

use std::fmt::Write as _;

/// A script that was run.
pub(super) struct TestedScript {
    pub name: String,
    pub seconds: f64,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The report of all of them.
pub(super) fn report(cases: &[TestedScript]) -> String {
    let failed = cases.iter().filter(|case| case.failure.is_some()).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let count = cases.len();
    let _ = writeln!(
        xml,
        "<testsuite name=\"umklapp\" tests=\"{count}\" failures=\"{failed}\" time=\"{seconds:.3}\">"
    );
    for case in cases {
        let _ = write!(xml, "  <testcase name=\"{}\" time=\"{:.3}\"", escaped(&case.name), case.seconds);
        match &case.failure {
            None => xml.push_str("/>\n"),
            Some(why) => {
                let first = why.lines().next().unwrap_or_default();
                let (first, why) = (escaped(first), escaped(why));
                let _ = writeln!(xml, ">\n    <failure message=\"{first}\">{why}</failure>\n  </testcase>");
            }
        }
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// A text without what XML reads as its own, or cannot hold.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_xml() {
        let case = |name: &str, why: Option<&str>| TestedScript {
            name: name.into(),
            seconds: 0.25,
            failure: why.map(str::to_string),
        };
        let xml = report(&[case("a.rhai", None), case("b<\">.rhai", Some("x & y\n\u{1b}[31m"))]);
        assert!(xml.contains("tests=\"2\" failures=\"1\" time=\"0.500\""), "{xml}");
        assert!(
            xml.contains("name=\"b&lt;&quot;&gt;.rhai\"") && xml.contains("message=\"x &amp; y\""),
            "{xml}"
        );
        assert!(!xml.contains('\u{1b}'), "{xml}");
    }
}
