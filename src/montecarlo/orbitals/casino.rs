//! Blip orbitals of CASINO (`bwfn.data`): the text that its plane-wave converter writes. The values there are the
//! coefficients themselves, of cubic B-splines whose centre has weight one: three halves of ours along each direction.

use super::super::SimulationCell;
use super::SplineLayout;
use crate::backend::splines::SplineTable;
use crate::error::{Error, Result};
use crate::number::C64;

/// A blip is `1 - 3/2 t^2 + 3/4 t^3`, 1 at its centre, where a B-spline is 2/3; a factor for each direction.
const BLIP: f64 = 1.5 * 1.5 * 1.5;

/// A file as read: what the table holds, the table, and the energies of its orbitals in hartree.
pub struct Blips {
    /// Cell, grid and kind of the functions.
    pub layout: SplineLayout,
    pub table: SplineTable,
    /// The energy of each orbital, in hartree.
    pub energies: Vec<f64>,
}

/// The lines of a file, with their numbers.
struct CasinoReader<'a> {
    lines: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
}

impl<'a> CasinoReader<'a> {
    fn next(&mut self) -> Result<(usize, &'a str)> {
        let (n, line) = self.lines.next().ok_or_else(|| Error::file("the file ends too early"))?;
        Ok((n + 1, line.trim()))
    }

    /// Goes to the line after the one that begins with `title`.
    fn after(&mut self, title: &str) -> Result<()> {
        loop {
            let (_, line) = self.next().map_err(|_| Error::file(format!("there is no line `{title}`")))?;
            if line.to_lowercase().starts_with(&title.to_lowercase()) {
                return Ok(());
            }
        }
    }

    fn numbers<const N: usize>(&mut self) -> Result<[f64; N]> {
        let (n, line) = self.next()?;
        let found: Vec<f64> = line
            .split_whitespace()
            .take(N)
            .map(|w| number(w).ok_or_else(|| wrong(n, line)))
            .collect::<Result<_>>()?;
        found.try_into().map_err(|_| wrong(n, line))
    }

    fn counts<const N: usize>(&mut self) -> Result<[usize; N]> {
        let numbers = self.numbers::<N>()?;
        let whole =
            |x: f64| if (0.0..1e9).contains(&x) && x.fract() == 0.0 { Some(x as usize) } else { None };
        let counts: Vec<usize> = numbers.iter().filter_map(|&x| whole(x)).collect();
        counts.try_into().map_err(|_| Error::file(format!("{numbers:?} where whole numbers belong")))
    }
}

fn wrong(n: usize, line: &str) -> Error {
    Error::file(format!(
        "line {n} is `{}`, not the numbers that belong there",
        line.chars().take(40).collect::<String>()
    ))
}

/// A number as Fortran writes it.
fn number(word: &str) -> Option<f64> {
    word.replace(['d', 'D'], "e").parse().ok()
}

/// A complex number as Fortran writes it: `(re,im)`.
fn pair(line: &str) -> Option<C64> {
    let (re, im) = line.trim().strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some(C64::new(number(re.trim())?, number(im.trim())?))
}

/// Whether a text that begins so is such a file.
pub fn is_file(head: &str) -> bool {
    let head = head.to_lowercase();
    head.contains("basic info") || head.contains("primitive lattice vectors")
}

/// Reads the orbitals of one k point. Its number in the file counts from 1; a file with a single k point needs none.
///
/// # Errors
/// What is not such a file, with the line; a k point that is not there; orbitals that differ between spins.
pub fn read(text: &str, single: bool, k_point: Option<usize>) -> Result<Blips> {
    let mut r = CasinoReader { lines: text.lines().enumerate().peekable() };
    r.after("Primitive lattice vectors")?;
    let cell = SimulationCell::new([r.numbers()?, r.numbers()?, r.numbers()?])?;
    r.after("Blip grid")?;
    let grid: [usize; 3] = r.counts()?;
    if grid.iter().any(|&n| n == 0 || n > 4096) {
        return Err(Error::file(format!("a blip grid of {grid:?} points")));
    }
    r.after("Number of k-points")?;
    let [points] = r.counts::<1>()?;
    let wanted = match k_point {
        Some(k) if (1..=points).contains(&k) => k,
        Some(k) => {
            return Err(Error::file(format!("there is no k point number {k}"))
                .hint(format!("the file has {points}, numbered from 1")));
        }
        None if points == 1 => 1,
        None => {
            return Err(Error::file(format!("the file has {points} k points")).hint(format!(
                "say which, from `k: 1` to `k: {points}`; or unfold the calculation to a larger cell with one"
            )));
        }
    };
    for _ in 0..wanted {
        r.after("k-point #")?;
    }
    let [_, up, down, kx, ky, kz] = r.numbers::<6>()?;
    if down != 0.0 {
        return Err(Error::file(format!("{up} bands of one spin and {down} of the other"))
            .hint("only one set of orbitals is read: make the file of a calculation without polarisation"));
    }
    let count = if (1.0..=1e6).contains(&up) && up.fract() == 0.0 { up as usize } else { 0 };
    if count == 0 {
        return Err(Error::file(format!("{up} bands")));
    }
    let k = [kx, ky, kz];
    let turn =
        cell.vectors().map(|a| (a[0] * k[0] + a[1] * k[1] + a[2] * k[2]) / (2.0 * std::f64::consts::PI));
    let twist = turn.map(|t| if t.abs() < 1e-9 { 0.0 } else { t });
    let sites = grid.iter().product::<usize>();
    let mut energies = Vec::with_capacity(count);
    let mut made: Option<(SplineLayout, SplineTable)> = None;
    for l in 0..count {
        r.after("Band, spin")?;
        let [_, spin, energy] = r.numbers::<3>()?;
        if spin != 1.0 {
            return Err(
                Error::file("the bands of the two spins differ").hint("only one set of orbitals is read")
            );
        }
        energies.push(energy);
        let (n, title) = r.next()?;
        let complex = match title.to_lowercase() {
            t if t.starts_with("real blip coefficients") => false,
            t if t.starts_with("complex blip coefficients") => true,
            _ => return Err(wrong(n, title)),
        };
        if let Some((layout, _)) = &made
            && layout.complex != complex
        {
            return Err(Error::file("real and complex orbitals in one file"));
        }
        if made.is_none() {
            let label = format!("{count} blip orbitals");
            let layout = SplineLayout { cell: cell.clone(), twist, grid, count, complex, single, label };
            let table = layout.table()?;
            made = Some((layout, table));
        }
        let Some((_, table)) = &mut made else { continue };
        let mut values = Vec::with_capacity(sites);
        for _ in 0..sites {
            let (n, line) = r.next()?;
            let value = if complex { pair(line) } else { number(line).map(|x| C64::new(x, 0.0)) };
            values.push(value.ok_or_else(|| wrong(n, line))? * BLIP);
        }
        if complex {
            table.set_lane(2 * l, values.iter().map(|z| z.re));
            table.set_lane(2 * l + 1, values.iter().map(|z| z.im));
        } else {
            table.set_lane(l, values.iter().map(|z| z.re));
        }
    }
    let (layout, table) = made.ok_or_else(|| Error::file("no bands"))?;
    Ok(Blips { layout, table, energies })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(complex: bool) -> String {
        let mut text = String::from(
            "A test\n\nBASIC INFO\n Generated by:\n  hand\n Periodicity:\n  3\n\nGEOMETRY\n Primitive lattice vectors \
             (au)\n  \
             4.0 0.0 0.0\n  0.0 4.0 0.0\n  0.0 0.0 6.0D0\n\nG VECTORS\n Blip grid\n  2 2 3\n\nWAVE FUNCTION\n Number \
             of k-points\n  1\n \
             k-point # ; # of bands (up spin/down spin) ; k-point coords (au)\n  1 2 0 0.0 0.0 0.0\n",
        );
        for band in 0..2 {
            let kind = if complex { "Complex" } else { "Real" };
            text += &format!(" Band, spin, eigenvalue (au), localized\n  {} 1 {}.5 F\n", band + 1, band);
            text += &format!(" {kind} blip coefficients for extended orbital\n");
            for k in 0..12 {
                let x = f64::from(k) * 0.1 + f64::from(band);
                text += &if complex { format!("  ({x:E},-1.0E0)\n") } else { format!("  {x:E}\n") };
            }
        }
        text
    }

    #[test]
    fn files_are_read() {
        for complex in [false, true] {
            let blips = read(&file(complex), false, None).unwrap();
            assert_eq!(
                (blips.layout.grid, blips.layout.count, blips.layout.complex),
                ([2, 2, 3], 2, complex)
            );
            assert_eq!(blips.energies, [0.5, 1.5]);
            let lane = if complex { 2 } else { 1 };
            assert!((blips.table.get(7, lane) - 1.7 * BLIP).abs() < 1e-12);
            assert!(!complex || (blips.table.get(0, 1) + BLIP).abs() < 1e-12);
            assert_eq!(blips.layout.cell.volume(), 96.0);
        }
    }

    #[test]
    fn k_points_are_chosen() {
        let one = file(true);
        let (head, points) = one.split_once(" k-point #").unwrap();
        let second = points.replace("1 2 0 0.0 0.0 0.0", "2 1 0 0.0 0.0 0.1").replacen("0.5", "7.5", 1);
        let both =
            format!("{} k-point #{points} k-point #{second}", head.replace("points\n  1", "points\n  2"));
        let message = |k| read(&both, false, k).err().unwrap().message().to_string();
        assert_eq!(message(None), "the file has 2 k points");
        assert_eq!(message(Some(3)), "there is no k point number 3");
        let first = read(&both, false, Some(1)).unwrap();
        assert_eq!((first.layout.count, first.layout.twist), (2, [0.0; 3]));
        let second = read(&both, false, Some(2)).unwrap();
        assert_eq!((second.layout.count, second.energies.as_slice()), (1, &[7.5][..]));
        assert!((second.layout.twist[2] - 0.6 / (2.0 * std::f64::consts::PI)).abs() < 1e-12);
    }

    #[test]
    fn broken_files_say_where() {
        let whole = file(false);
        let e = |text: String| read(&text, false, None).err().unwrap().message().to_string();
        assert_eq!(e("nothing".into()), "there is no line `Primitive lattice vectors`");
        assert!(
            e(whole.replace("Number of k-points\n  1", "Number of k-points\n  2")).contains("2 k points")
        );
        assert!(e(whole.replacen("  5E-1\n", "  three\n", 1)).contains("`three`"));
        assert_eq!(e(whole[..whole.len() - 14].into()), "the file ends too early");
        assert!(e(whole.replace("  2 2 3", "  2 2 300000")).contains("grid"));
        // Also as many bands of the other spin, which would stand behind those that are read.
        for down in [2, 5] {
            assert!(e(whole.replace("1 2 0 0.0", &format!("1 2 {down} 0.0"))).contains("other"), "{down}");
        }
        // Real orbitals have a phase at a k point of a whole turn, too.
        let turned = whole.replace("1 2 0 0.0 0.0 0.0", "1 2 0 1.5707963267948966 0.0 0.0");
        assert!(read(&turned, false, None).is_err());
    }
}
