//! Labels as people write them: Greek letters and signs by the names that LaTeX has for them, parts that stand above or
//! below the line, one in another. They travel through a drawing as text with marks,
//! which every kind of picture reads in its way.

use std::iter::Peekable;
use std::str::Chars;

use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::letters::{advance, shifted};

/// What stands above or below the line begins with one of these and ends with the third. No alphabet has them.
const UP: char = '\u{e000}';
const DOWN: char = '\u{e001}';
const END: char = '\u{e002}';

/// Letters above and below the line are smaller by this, and stand higher or lower by such parts of the size.
const SMALL: f64 = 0.68;
const RAISED: f64 = 0.36;
const LOWERED: f64 = 0.16;

/// Groups within groups.
const DEEP: usize = 4;

/// Signs by their names.
#[rustfmt::skip]
const SIGNS: [(&str, char); 104] = [
    ("alpha", 'α'), ("beta", 'β'), ("gamma", 'γ'), ("delta", 'δ'), ("epsilon", 'ε'), ("varepsilon", 'ε'),
    ("zeta", 'ζ'), ("eta", 'η'), ("theta", 'θ'), ("vartheta", 'ϑ'), ("iota", 'ι'), ("kappa", 'κ'),
    ("lambda", 'λ'), ("mu", 'μ'), ("nu", 'ν'), ("xi", 'ξ'), ("omicron", 'ο'), ("pi", 'π'), ("rho", 'ρ'),
    ("sigma", 'σ'), ("varsigma", 'ς'), ("tau", 'τ'), ("upsilon", 'υ'), ("phi", 'φ'), ("varphi", 'φ'),
    ("chi", 'χ'), ("psi", 'ψ'), ("omega", 'ω'), ("Gamma", 'Γ'), ("Delta", 'Δ'), ("Theta", 'Θ'),
    ("Lambda", 'Λ'), ("Xi", 'Ξ'), ("Pi", 'Π'), ("Sigma", 'Σ'), ("Upsilon", 'Υ'), ("Phi", 'Φ'), ("Psi", 'Ψ'),
    ("Omega", 'Ω'), ("hbar", 'ħ'), ("ell", 'ℓ'), ("partial", '∂'), ("nabla", '∇'), ("infty", '∞'),
    ("int", '∫'), ("sum", '∑'), ("prod", '∏'), ("pm", '±'), ("times", '×'), ("div", '÷'), ("cdot", '·'),
    ("bullet", '•'), ("dagger", '†'), ("circ", '°'), ("degree", '°'), ("prime", '′'), ("le", '≤'), ("leq", '≤'),
    ("ge", '≥'), ("geq", '≥'), ("ne", '≠'), ("neq", '≠'), ("approx", '≈'), ("equiv", '≡'), ("sim", '∼'),
    ("propto", '∝'), ("ll", '«'), ("gg", '»'), ("in", '∈'), ("notin", '∉'), ("subset", '⊂'), ("cup", '∪'),
    ("cap", '∩'), ("emptyset", '∅'), ("forall", '∀'), ("exists", '∃'), ("wedge", '∧'), ("vee", '∨'),
    ("neg", '¬'), ("oplus", '⊕'), ("otimes", '⊗'), ("perp", '⊥'), ("angle", '∠'), ("langle", '⟨'),
    ("rangle", '⟩'), ("to", '→'), ("rightarrow", '→'), ("leftarrow", '←'), ("leftrightarrow", '↔'),
    ("uparrow", '↑'), ("downarrow", '↓'), ("Rightarrow", '⇒'), ("Leftarrow", '⇐'), ("Leftrightarrow", '⇔'),
    ("ldots", '…'), ("dots", '…'), ("Re", 'ℜ'), ("Im", 'ℑ'), ("aleph", 'ℵ'), ("AA", 'Å'), ("angstrom", 'Å'),
    ("micro", 'µ'), ("quad", ' '), ("mid", '|'),
];

/// The signs that names of variables may hold, by the names that LaTeX has for them.
pub fn letters() -> impl Iterator<Item = (&'static str, char)> {
    SIGNS.into_iter().filter(|(_, sign)| sign.is_alphabetic())
}

/// Names that stand for themselves.
const WORDS: [&str; 16] = [
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "ln", "log", "det", "tr", "arg", "max", "min", "lim",
    "dim",
];

/// Names whose argument is shown as it is.
const PLAIN: [&str; 9] =
    ["mathrm", "text", "textrm", "mathit", "mathbf", "mathsf", "mathcal", "operatorname", "boldsymbol"];

/// Letters at one height of a label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fragment {
    pub text: String,
    /// How far above the line they stand, and how large they are, in parts of a plain letter's size.
    pub up: f64,
    pub scale: f64,
}

struct LabelReader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// Within `$..$`, or in a group that is raised or lowered: there `_` and `^` take the next letter.
    maths: bool,
    /// Whether `$` marks maths: there is an even number of them.
    dollars: bool,
}

/// The label with its signs, and marks around what stands above or below the line.
pub(super) fn marked(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(*c, UP | DOWN | END)).collect();
    let count = text.matches('$').count() - text.matches("\\$").count();
    let dollars = count > 0 && count.is_multiple_of(2);
    let mut reader = LabelReader { rest: text.chars().peekable(), out: String::new(), maths: false, dollars };
    reader.read(false, 0);
    reader.out
}

impl LabelReader<'_> {
    /// Reads to the end, or to the brace that ends a group.
    fn read(&mut self, group: bool, depth: usize) {
        // Whether what stands before is a sign or a group, which `_` and `^` belong to.
        let mut tight = false;
        while let Some(c) = self.rest.next() {
            let was_tight = std::mem::take(&mut tight);
            match c {
                '}' if group => return,
                '{' if group && depth < DEEP => {
                    self.read(true, depth + 1);
                    tight = true;
                }
                '$' if self.dollars => self.maths = !self.maths,
                '\\' => tight = self.sign(depth),
                '^' | '_' => tight = self.shift(c, was_tight, depth),
                c => self.out.push(c),
            }
        }
    }

    /// What follows a backslash; whether it is a sign.
    fn sign(&mut self, depth: usize) -> bool {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(char::is_ascii_alphabetic) {
            name.push(c);
        }
        if name.is_empty() {
            match self.rest.next() {
                Some(c @ ('{' | '}' | '$' | '_' | '^' | '\\' | '%' | '&' | '#')) => self.out.push(c),
                Some(',' | ';' | ':' | ' ') => self.out.push(' '),
                Some('!') => {}
                Some(c) => self.out.extend(['\\', c]),
                None => self.out.push('\\'),
            }
            return false;
        }
        if let Some((_, sign)) = SIGNS.iter().find(|(known, _)| *known == name) {
            self.out.push(*sign);
        } else if WORDS.contains(&name.as_str()) {
            self.out.push_str(&name);
        } else if PLAIN.contains(&name.as_str()) {
            let argument = self.argument(depth);
            self.out.push_str(&argument);
        } else if name == "sqrt" {
            let argument = bracketed(self.argument(depth));
            self.out.push('√');
            self.out.push_str(&argument);
        } else if name == "frac" {
            let parts = [bracketed(self.argument(depth)), bracketed(self.argument(depth))];
            self.out.push_str(&parts.join("/"));
        } else if !matches!(name.as_str(), "left" | "right") {
            self.out.push('\\');
            self.out.push_str(&name);
            return false;
        }
        // `\alpha{}x` parts a name from the letter behind it.
        let mut ahead = self.rest.clone();
        if (ahead.next(), ahead.next()) == (Some('{'), Some('}')) {
            self.rest = ahead;
        }
        true
    }

    /// The group that follows, or the next letter, as it is read.
    fn argument(&mut self, depth: usize) -> String {
        let before = std::mem::take(&mut self.out);
        match self.rest.next() {
            Some('{') if depth < DEEP => self.read(true, depth + 1),
            Some('\\') if depth < DEEP => drop(self.sign(depth + 1)),
            Some(c) => self.out.push(c),
            None => {}
        }
        std::mem::replace(&mut self.out, before)
    }

    /// What follows `^` or `_`; whether something is raised or lowered.
    fn shift(&mut self, mark: char, tight: bool, depth: usize) -> bool {
        let begin = if mark == '^' { UP } else { DOWN };
        let group = self.rest.peek() == Some(&'{') && closes(self.rest.clone());
        let sign =
            self.rest.peek() == Some(&'\\') && self.rest.clone().nth(1).is_some_and(char::is_alphabetic);
        if depth < DEEP && (group || sign) {
            let maths = std::mem::replace(&mut self.maths, true);
            let argument = self.argument(depth);
            self.maths = maths;
            if argument.is_empty() {
                self.out.extend([mark, '{', '}']);
            } else {
                self.out.push(begin);
                self.out.push_str(&argument);
                self.out.push(END);
            }
            return true;
        }
        let number = if mark == '^' { self.number() } else { String::new() };
        let letters = match number.is_empty() {
            false => number,
            true if tight || self.maths || mark == '_' && self.alone() => {
                let fits = |c: &char| c.is_alphanumeric() || matches!(c, '+' | '-' | '*' | '′' | '†');
                self.rest.next_if(fits).map_or(String::new(), String::from)
            }
            true => String::new(),
        };
        if letters.is_empty() {
            self.out.push(mark);
            return false;
        }
        self.out.push(begin);
        self.out.push_str(&letters);
        self.out.push(END);
        true
    }

    /// A sign and digits, taken off what follows.
    fn number(&mut self) -> String {
        let mut ahead = self.rest.clone();
        let mut found: String = ahead.next_if(|c| matches!(c, '-' | '+')).into_iter().collect();
        let sign = found.len();
        while let Some(digit) = ahead.next_if(char::is_ascii_digit) {
            found.push(digit);
        }
        if found.len() == sign {
            return String::new();
        }
        self.rest = ahead;
        found
    }

    /// Whether `_` stands between one letter and one letter or digit, as in `E_F`: names of columns are longer.
    fn alone(&self) -> bool {
        let part = |c: &char| c.is_alphanumeric() || matches!(*c, '_' | '^');
        let mut before = self.out.chars().rev();
        let letter =
            before.next().is_some_and(char::is_alphabetic) && !before.next().is_some_and(|c| part(&c));
        let mut after = self.rest.clone();
        let longer = |c: char| c.is_alphanumeric() || c == '_';
        letter && after.next().is_some_and(char::is_alphanumeric) && !after.next().is_some_and(longer)
    }
}

/// Whether the brace that a text begins with is closed; no label has longer groups.
fn closes(text: impl Iterator<Item = char>) -> bool {
    let mut open = 0usize;
    let mut escaped = false;
    for c in text.take(1000) {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '{' => open += 1,
            '}' if open == 1 => return true,
            '}' => open -= 1,
            _ => {}
        }
    }
    false
}

/// In brackets, unless it is one letter, with what stands above and below it, or a number.
fn bracketed(text: String) -> String {
    let whole = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let on_the_line = pieces(&text).into_iter().filter(|piece| piece.up == 0.0);
    let letters: usize = on_the_line.map(|piece| piece.text.chars().count()).sum();
    if whole || letters <= 1 { text } else { format!("({text})") }
}

/// Height and size of what is raised above letters of some height and size.
pub(super) fn above(up: f64, scale: f64) -> (f64, f64) {
    (up + RAISED * scale, SMALL * scale)
}

/// The same of what is lowered.
pub(super) fn below(up: f64, scale: f64) -> (f64, f64) {
    (up - LOWERED * scale, SMALL * scale)
}

/// How far what is raised in a marked label stands above its plain letters, in parts of their size.
pub(super) fn rise(marked: &str) -> f64 {
    const CAPITAL: f64 = 0.73;
    let tops = pieces(marked).into_iter().map(|piece| piece.up + CAPITAL * (piece.scale - 1.0));
    tops.fold(0.0, f64::max)
}

/// A marked label cut into pieces.
pub(super) fn pieces(marked: &str) -> Vec<Fragment> {
    let mut found: Vec<Fragment> = Vec::new();
    let mut heights = vec![(0.0, 1.0)];
    for c in marked.chars() {
        let (up, scale) = heights.last().copied().unwrap_or((0.0, 1.0));
        match c {
            UP => heights.push(above(up, scale)),
            DOWN => heights.push(below(up, scale)),
            END if heights.len() > 1 => drop(heights.pop()),
            END => {}
            c => match found.last_mut().filter(|piece| (piece.up, piece.scale) == (up, scale)) {
                Some(piece) => piece.text.push(c),
                None => found.push(Fragment { text: c.into(), up, scale }),
            },
        }
    }
    found
}

/// A marked label in letters alone: raised and lowered ones where alphabets have them, else behind `^` and `_`.
pub(super) fn flat(marked: &str) -> String {
    let mut open: Vec<(char, String)> = vec![(END, String::new())];
    let close = |open: &mut Vec<(char, String)>| {
        let Some((mark, inner)) = open.pop() else { return };
        let moved: Option<String> = inner.chars().map(|c| shifted(c, mark == UP)).collect();
        let text = moved.unwrap_or_else(|| format!("{}{inner}", if mark == UP { '^' } else { '_' }));
        if let Some((_, out)) = open.last_mut() {
            out.push_str(&text);
        }
    };
    for c in marked.chars() {
        match c {
            UP | DOWN => open.push((c, String::new())),
            END if open.len() > 1 => close(&mut open),
            END => {}
            c => open.last_mut().into_iter().for_each(|(_, text)| text.push(c)),
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map_or(String::new(), |(_, text)| text)
}

/// A label in letters alone.
pub(super) fn raised(text: &str) -> String {
    flat(&marked(text))
}

/// A number with its power of ten as people write it: `1e-5` as 10⁻⁵, `2.5e6` as 2.5·10⁶.
pub(super) fn raised_power(text: &str) -> String {
    let Some((mantissa, power)) = text.split_once('e') else { return text.to_string() };
    let ten = raised(&format!("10^{{{power}}}"));
    match mantissa {
        "1" => ten,
        "-1" => format!("-{ten}"),
        _ => format!("{mantissa}·{ten}"),
    }
}

/// An SVG document with its marked texts as such of several heights.
pub(super) fn in_svg(svg: String) -> String {
    if !svg.contains([UP, DOWN]) {
        return svg;
    }
    let mut out = String::with_capacity(svg.len() + 1024);
    let mut rest = svg.as_str();
    while let Some(start) = rest.find("<text ") {
        let Some(open) = rest[start..].find('>').map(|at| start + at + 1) else { break };
        let Some(end) = rest[open..].find("</text>").map(|at| open + at) else { break };
        let content = &rest[open..end];
        out.push_str(&rest[..open]);
        if content.contains([UP, DOWN]) {
            let size = rest[start..open].split("font-size=\"").nth(1).and_then(|t| t.split('"').next());
            let size: f64 = size.and_then(|t| t.parse().ok()).unwrap_or(12.0);
            let mut up = 0.0;
            for piece in pieces(content) {
                let (down, letters) = ((up - piece.up) * size, piece.scale * size);
                up = piece.up;
                out.push_str(&format!(
                    "<tspan dy=\"{down:.2}\" font-size=\"{letters:.2}\">{}</tspan>",
                    piece.text
                ));
            }
        } else {
            out.push_str(content);
        }
        out.push_str("</text>");
        rest = &rest[end + "</text>".len()..];
    }
    out.push_str(rest);
    out
}

/// The scene with every piece of a marked text as a text of its own, for pictures made of dots.
pub(super) fn apart(scene: &mut Scene) {
    let elements = std::mem::take(&mut scene.elements);
    for element in elements {
        match element {
            Primitive::Text { x, y, content, size, anchor, rotate, bold, color }
                if content.contains([UP, DOWN]) =>
            {
                let pieces = pieces(&content);
                let plain = f64::from(size);
                let wide = |piece: &Fragment| {
                    let size = f64::from(small(piece, plain));
                    piece.text.chars().map(|c| advance(c, bold)).sum::<f64>() * size
                };
                let whole: f64 = pieces.iter().map(wide).sum();
                let mut along = match anchor {
                    TextAnchor::Start => 0.0,
                    TextAnchor::Middle => -0.5 * whole,
                    TextAnchor::End => -whole,
                };
                let (sin, cos) = rotate.unwrap_or(0.0).to_radians().sin_cos();
                for piece in pieces {
                    let up = piece.up * plain;
                    let width = wide(&piece);
                    scene.elements.push(Primitive::Text {
                        x: x + along * cos + up * sin,
                        y: y + along * sin - up * cos,
                        size: small(&piece, plain),
                        content: piece.text,
                        anchor: TextAnchor::Start,
                        rotate,
                        bold,
                        color: color.clone(),
                    });
                    along += width;
                }
            }
            other => scene.elements.push(other),
        }
    }
}

/// The size of a piece's letters in whole pixels.
fn small(piece: &Fragment, plain: f64) -> u32 {
    (piece.scale * plain).round().max(4.0) as u32
}

/// The signs that have names.
#[cfg(test)]
pub(super) fn signs() -> impl Iterator<Item = char> {
    SIGNS.iter().map(|(_, sign)| *sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A label with `[^ ]`, `[_ ]` for its marks.
    fn read(text: &str) -> String {
        marked(text).replace(UP, "[^").replace(DOWN, "[_").replace(END, "]")
    }

    #[test]
    fn labels_are_read_as_latex_writes_them() {
        for (text, shown) in [
            (r"\alpha", "α"),
            (r"\hbar\omega / t", "ħω / t"),
            (r"\sigma_{xy} (e^2/h)", "σ[_xy] (e[^2]/h)"),
            (r"\sigma_x^2", "σ[_x][^2]"),
            (r"10^{-3} of N_{0}", "10[^-3] of N[_0]"),
            (r"e^{-\beta E_n}", "e[^-β E[_n]]"),
            (r"x^{y^{z_{1}}}", "x[^y[^z[_1]]]"),
            (r"\langle S^z_i S^z_j \rangle", "⟨ S^z_i S^z_j ⟩"),
            (r"$\langle S^z_i S^z_j \rangle$", "⟨ S[^z][_i] S[^z][_j] ⟩"),
            (r"$E_F$ (eV)", "E[_F] (eV)"),
            ("E_F and k_x / T_c", "E[_F] and k[_x] / T[_c]"),
            ("k_x^2 + k_y^{2}", "k[_x][^2] + k[_y][^2]"),
            (r"\tau_{\mathrm{int}}", "τ[_int]"),
            (r"\chi^{(2)}_\mathrm{DC}", "χ[^(2)][_DC]"),
            (r"\epsilon_\mathbf{k}", "ε[_k]"),
            (r"c^\dagger", "c[^†]"),
            (r"\sqrt{2}, \sqrt{x + 1}, \frac{1}{2}, \frac{e^2}{h}", "√2, √(x + 1), 1/2, e[^2]/h"),
            (r"\alpha{}x \{1\} \$ \_", "αx {1} $ _"),
            (r"\left( \sin k \right)", "( sin k )"),
            // What is no such thing stays.
            ("spin_up_error n_up a_1b ab_1 _x x_ ^ x^", "spin_up_error n_up a_1b ab_1 _x x_ ^ x^"),
            (r"\unknown \5 set {1, 2} 3 $ and", r"\unknown \5 set {1, 2} 3 $ and"),
            ("x_{open x^{", "x_{open x^{"),
            ("a}b \\", "a}b \\"),
            ("x^y x^-y", "x^y x^-y"),
        ] {
            assert_eq!(read(text), shown, "{text}");
        }
        // Depth has an end, and so has reading.
        assert!(read(&"^{".repeat(10_000)).len() < 100_000);
        assert!(read(&format!("{}{}", "x^{".repeat(50), "}".repeat(50))).contains('x'));
        let mut names: Vec<&str> = SIGNS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SIGNS.len());
    }

    #[test]
    fn pieces_have_heights() {
        let found = pieces(&marked("x^{a_{1}}y"));
        let texts: Vec<&str> = found.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(texts, ["x", "a", "1", "y"]);
        assert!((found[2].up - (RAISED - LOWERED * SMALL)).abs() < 1e-12);
        assert!((found[2].scale - SMALL * SMALL).abs() < 1e-12);
        assert_eq!((found[3].up, found[3].scale), (0.0, 1.0));
        // Marks that do not match are borne.
        assert_eq!(pieces(&format!("{END}a{UP}b")).len(), 2);
    }

    #[test]
    fn letters_alone_where_there_is_one_height() {
        for (text, shown) in [
            ("10^{-3} e^2/h", "10⁻³ e²/h"),
            ("N_{0} of 8^3", "N₀ of 8³"),
            (r"\sigma_{xy}", "σ_xy"),
            ("E_F", "E_F"),
            ("x^{y_1}", "x^y₁"),
        ] {
            assert_eq!(raised(text), shown);
        }
    }

    #[test]
    fn svg_has_spans_whose_heights_come_back() {
        let svg = format!(
            "<svg><text x=\"1\" font-size=\"10\">{}</text><text>b</text></svg>",
            marked("a &amp; x^{2}y")
        );
        let found = in_svg(svg);
        assert_eq!(
            found,
            "<svg><text x=\"1\" font-size=\"10\"><tspan dy=\"0.00\" font-size=\"10.00\">a &amp; x</tspan>\
             <tspan dy=\"-3.60\" font-size=\"6.80\">2</tspan><tspan dy=\"3.60\" font-size=\"10.00\">y</tspan></text>\
             <text>b</text></svg>"
        );
    }
}
