//! Conductances and resistances of samples between leads.

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use super::sparse::indices;
use super::transport::{ScriptSample, at_energies, lead_number, one, tell_all};
use crate::error::{Error, Result};
use crate::number::Matrix;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("transport", exported_module!(conductance_functions));
}

/// Two leads, given as an array.
fn pair(leads: Array, what: &str) -> Result<(usize, usize)> {
    match indices(Dynamic::from(leads), "lead")?[..] {
        [a, b] => Ok((a, b)),
        ref all => Err(Error::input(format!("{what} of {} leads", all.len()))
            .hint("give two leads, like [0, 1]; they are counted from 0")),
    }
}

#[export_module(root = "crate::script::native")]
mod conductance_functions {
    /// The conductance matrix at an energy, in e^2/h for each spin: element (i, j) is the current into the sample
    /// through lead i for a voltage of one at lead j. Outside the diagonal it is minus the transmission from j to i,
    /// and rows and columns add up to zero.
    ///
    /// With pairing, electrons and holes carry opposite charges, and superconducting leads are the ground: their
    /// columns are zero. The row of a single superconductor is the current that leaves through it (its columns add up
    /// to zero); those of several are NaN. Where the sample itself is the superconductor, columns add up to what leaves
    /// through it.
    ///
    /// # Example
    /// ```rhai
    /// // one impurity in a chain: T = 1/(1 + U^2/(4 - E^2))
    /// let m = model(lattice::chain(3).boundary("open"));
    /// m.nearest(-1.0);
    /// m.onsite(|r| if r[0] == 1.0 { 0.7 } else { 0.0 });
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [-1, 1].map(|side| transport::lead(c, #{ side: side })) });
    /// let t = 1.0 / (1.0 + 0.49 / (4.0 - 0.16));
    /// assert_close((s.conductance(0.4) - matrix([[t, -t], [-t, t]])).norm(), 0.0, 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn conductance(ctx: NativeCallContext, s: &mut ScriptSample, energy: Dynamic) -> Fallible<Matrix> {
        let energy = one(&energy)?;
        tell_all(&ctx, s, &[energy])?;
        Ok(s.0.conductance(energy, &session()?.task(true))?)
    }

    /// The resistance of a sample with several leads, in h/e^2 for each spin (Buettiker, PRL 57 (1986) 1761): a current
    /// comes in through the first lead of `current` and leaves through the second, and the voltage of the first lead of
    /// `voltage` against the second is divided by it. Other leads measure voltages without a current;
    /// superconductors are the ground. With two leads, [0, 1] and [0, 1], it is the inverse of the transmission. At
    /// several energies (a Series or an array) it is a Series.
    ///
    /// # Example
    /// ```rhai
    /// // a cross of four chains: two resistors from the middle to each lead, as if each were 1/4 of h/e^2
    /// let m = model(lattice::points([[0.0, 0.0]]));
    /// let x = model(lattice::square(1, 1).boundary(["periodic", "open"]));
    /// let y = model(lattice::square(1, 1).boundary(["open", "periodic"]));
    /// x.nearest(-1.0);
    /// y.nearest(-1.0);
    /// let leads = [[x, -1], [x, 1], [y, -1], [y, 1]].map(|l| transport::lead(l[0], #{ side: l[1] }));
    /// let s = transport::system(m, #{ leads: leads });
    /// let t = -s.conductance(0.0)[[0, 1]];                       // the same between all
    /// assert_close(s.resistance([0, 1], [0, 1], 0.0), 1.0 / (2.0 * t), 1e-9);
    /// assert_close(s.resistance([0, 1], [2, 3], 0.0), 0.0, 1e-9);
    /// assert_close(s.resistance([0, 1], [0, 2], 0.0), 1.0 / (4.0 * t), 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn resistance(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        current: Array,
        voltage: Array,
        energy: Dynamic,
    ) -> Fallible<Dynamic> {
        let (current, voltage) = (pair(current, "a current")?, pair(voltage, "a voltage")?);
        if current.0 == current.1 {
            return Err(Error::input(format!("a current from lead {} to itself", current.0))
                .hint("it comes in through one lead and leaves through another")
                .into());
        }
        at_energies(&ctx, s, &energy, "resistance", |x, task| s.0.resistance(current, voltage, x, task))
    }

    /// The shot noise at zero temperature of a current from one lead to another: the sum of `T_n (1 - T_n)` over the
    /// probabilities that pass (Buettiker, PRB 46 (1992) 12485), in units of `2 e V e^2/h` for each spin, with a
    /// voltage `V` at the first lead alone. Divided by the transmission it is the Fano factor: 1 for tunnelling, 1/3
    /// for a wire with much disorder, 0 for channels that are open. At several energies (a Series or an array) it is a
    /// Series.
    ///
    /// # Example
    /// ```rhai
    /// // one channel with an impurity: T (1 - T)
    /// let m = model(lattice::chain(3).boundary("open"));
    /// m.nearest(-1.0);
    /// m.onsite(|r| if r[0] == 1.0 { 0.7 } else { 0.0 });
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [-1, 1].map(|side| transport::lead(c, #{ side: side })) });
    /// let t = 1.0 / (1.0 + 0.49 / (4.0 - 0.16));
    /// assert_close(s.shot_noise(0, 1, 0.4), t * (1.0 - t), 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn shot_noise(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        from: INT,
        to: INT,
        energy: Dynamic,
    ) -> Fallible<Dynamic> {
        let (from, to) = (lead_number(from)?, lead_number(to)?);
        at_energies(&ctx, s, &energy, "shot noise", |x, task| s.0.shot_noise(from, to, x, task))
    }
}
