//! What a bibliography says of a work.

/// A published work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CitedWork {
    /// Its key in a bibliography.
    pub key: &'static str,
    /// Names of the authors, as BibTeX takes them.
    pub author: &'static str,
    pub title: &'static str,
    /// Where it appeared.
    pub journal: &'static str,
    /// Volume, or number of a report.
    pub volume: &'static str,
    /// First page or number of the article.
    pub pages: &'static str,
    pub year: u16,
}

pub(super) const fn work(
    key: &'static str,
    author: &'static str,
    title: &'static str,
    [journal, volume, pages]: [&'static str; 3],
    year: u16,
) -> CitedWork {
    CitedWork { key, author, title, journal, volume, pages, year }
}

impl CitedWork {
    /// The work as an entry of BibTeX.
    pub fn bibtex(&self) -> String {
        let year = self.year.to_string();
        let fields = [
            ("author", self.author),
            ("title", self.title),
            ("journal", self.journal),
            ("volume", self.volume),
            ("pages", self.pages),
            ("year", &year),
        ];
        let lines = fields.iter().filter(|field| !field.1.is_empty());
        let lines: String = lines.map(|(name, value)| format!("  {name} = {{{value}}},\n")).collect();
        format!("@article{{{},\n{lines}}}", self.key)
    }
}
