//! `markers`: topology in real space, reach of states, statistics of levels, entanglement of free fermions.

use rhai::plugin::*;
use rhai::{Dynamic, INT, Map};

use super::values::to_series;
use super::vector::{Vector, row_numbers};
use super::vector_values::numbers;
use crate::error::{Error, Result};
use crate::method;
use crate::number::Series;
use crate::operator::Operator;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("markers", exported_module!(marker_functions));
}

#[export_module(root = "crate::script::native")]
mod marker_functions {
    /// The local Chern marker of each site of an open sample (Bianco, Resta 2011), a Series. Inside the sample, the
    /// markers of the sites of a cell add up to the Chern number of the filled states, with or without disorder. All
    /// matrices are dense.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of states below the gap.
    ///
    /// # Example
    /// ```rhai
    /// // Qi, Wu, Zhang: H = sin(kx) sx + sin(ky) sy + (M + cos(kx) + cos(ky)) sz
    /// fn qwz(lat) {
    ///     let s = pauli();
    ///     let m = model(lat, 2);
    ///     m.onsite(-1.0 * s.z);
    ///     m.hop([1, 0], 0.5 * s.z + 0.5 * I * s.x);
    ///     m.hop([0, 1], 0.5 * s.z + 0.5 * I * s.y);
    ///     m
    /// }
    /// let lat = lattice::square(12, 12).boundary("open");
    /// let c = markers::chern(qwz(lat).build(), #{ filled: 144 });
    /// let bulk = chern_number(qwz(lattice::square(1, 1)), #{ filled: 1 });
    /// assert_close(c[lat.site([6, 6])], bulk, 0.1);
    /// assert_close(c.sum(), 0.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chern(h: Operator, o: Options) -> Fallible<Series> {
        Ok(Series::Real(method::chern_marker(&h, o.count("filled")?)?))
    }

    /// The Bott index of the filled states of a sample that is periodic in both directions. It equals the Chern number
    /// (Loring, Hastings 2010). All matrices are dense.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of states below the gap.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(8, 8), 2);
    /// let s = pauli();
    /// m.onsite(-1.0 * s.z);
    /// m.hop([1, 0], 0.5 * s.z + 0.5 * I * s.x);
    /// m.hop([0, 1], 0.5 * s.z + 0.5 * I * s.y);
    /// m.disorder(0.5, #{ seed: 1 });
    /// assert(abs(markers::bott(m.build(), #{ filled: 64 })) == 1, "disorder leaves it");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn bott(h: Operator, o: Options) -> Fallible<INT> {
        Ok(method::bott_index(&h, o.count("filled")?)?)
    }

    /// The number of rows over which each state of a block extends: `(sum |psi|^2)^2 / sum |psi|^4`. It is 1 for a
    /// state on a single row, and the number of rows for a plane wave.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(50), #{ hopping: -1.0 });
    /// assert_close(markers::participation(davidson(h).vectors)[0], 50.0, 1e-6);
    /// assert_close(markers::participation(unit_block(h, [3]))[0], 1.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn participation(v: Vector) -> Fallible<Series> {
        let (columns, all) = (v.block.columns(), numbers(&v)?.to_complex());
        let reach = |c: usize| -> Result<f64> {
            let own = || all.iter().skip(c).step_by(columns);
            // Squares of small numbers would be none.
            let largest = own().fold(0.0f64, |most, z| most.max(z.re.abs()).max(z.im.abs()));
            let weights = || own().map(|z| (z / largest).norm_sqr());
            let (one, two) = (weights().sum::<f64>(), weights().map(|w| w * w).sum::<f64>());
            if largest > 0.0 {
                Ok(one * one / two)
            } else {
                Err(Error::input(format!("column {c} of a block is zero")).hint("a state has a norm"))
            }
        };
        Ok(Series::Real((0..columns).map(reach).collect::<Result<_>>()?))
    }

    /// The mean ratio of neighbouring spacings of levels, the smaller to the larger (Oganesyan, Huse 2007): a map of
    /// `ratio` and its standard `error`. The ratio is 2 ln 2 - 1 = 0.386 for independent levels, 0.531 for real random
    /// matrices and 0.600 for complex ones.
    ///
    /// # Example
    /// ```rhai
    /// let found = markers::level_ratio([0.0, 1.0, 3.0, 4.0]);
    /// assert_close(found.ratio, 0.5, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn level_ratio(levels: Dynamic) -> Fallible<Map> {
        let levels = to_series(&levels)?;
        let (ratio, error) = method::level_ratio(levels.as_real("levels")?)?;
        let mut map = Map::new();
        map.insert("ratio".into(), Dynamic::from_float(ratio));
        map.insert("error".into(), Dynamic::from_float(error));
        Ok(map)
    }

    /// The entanglement of some rows with the rest, for free fermions that fill the lowest states: a map of
    /// `occupations`, the ascending eigenvalues of the correlation matrix (Peschel 2003), and `entropy`, with the
    /// natural logarithm. The single-particle entanglement energies are `ln(1/n - 1)`. In a model with `pairing` of
    /// `spin: "none"` an electron and its hole are one fermion. Then a part must contain both rows, and half of all
    /// states are filled. Occupations come in pairs `n`, `1 - n`, and each counts half in the entropy. Two levels at
    /// zero, like the Majorana modes at the ends of a wire, are one fermion: both ground states must have one entropy.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of fermions.
    /// - `rows` (array or range, required): give the rows of the part.
    ///
    /// # Example
    /// ```rhai
    /// // one particle on two sites
    /// let h = tight_binding(lattice::chain(2).boundary("open"), #{ hopping: -1.0 });
    /// assert_close(markers::entanglement(h, #{ filled: 1, rows: [0] }).entropy, ln(2.0), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn entanglement(h: Operator, o: Options) -> Fallible<Map> {
        let rows = row_numbers(o.value("rows")?, "row")?;
        let (occupations, entropy) = method::entanglement(&h, o.count("filled")?, &rows)?;
        let mut map = Map::new();
        map.insert("occupations".into(), Dynamic::from(Series::Real(occupations)));
        map.insert("entropy".into(), Dynamic::from_float(entropy));
        Ok(map)
    }
}
