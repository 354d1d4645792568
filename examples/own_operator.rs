//! An own operator: hopping from every site to every other, which as a matrix would be dense, beside a sparse one.
//! Registered for scripts, it works in every method of the library.
//!
//! `cargo run --release --example own_operator`

use std::process::ExitCode;

use umklapp::Engine;
use umklapp::backend::{BlockVector, Kernel, KernelInfo};
use umklapp::error::{Error, Result};
use umklapp::number::C64;
use umklapp::operator::{Action, LinearOperator, Operator};
use umklapp::script::Fallible;

/// `A + g |u><u|` with the normalised vector `u`.
struct Coupled {
    a: Operator,
    g: f64,
    u: BlockVector,
}

impl Coupled {
    /// All sites coupled alike: `u` is constant.
    fn uniform(a: &Operator, g: f64) -> Result<Operator> {
        if !g.is_finite() {
            return Err(Error::input(format!("a coupling of {g}")).hint("it is an energy"));
        }
        let entry = C64::new(1.0 / (a.dim() as f64).sqrt(), 0.0);
        let u = a.device().upload(a.dtype(), a.rows(), 1, &vec![entry; a.rows().local])?;
        Ok(Coupled { a: a.clone(), g, u }.into_operator())
    }
}

impl Action for Coupled {
    fn like(&self) -> &Operator {
        &self.a
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        let device = self.a.device();
        let u = device.convert(&self.u, v.dtype())?;
        let mut w = self.a.apply(v)?;
        let overlaps: Vec<C64> = device.gram(&u, v)?.into_iter().map(|x| x * self.g).collect();
        device.combine(&u, &overlaps, 1.0, &mut w)?;
        Ok(w)
    }

    fn about(&self) -> KernelInfo {
        let a = self.a.info();
        KernelInfo { format: format!("{} and all sites coupled", a.format), ..a }
    }
}

impl LinearOperator for Coupled {
    fn kernel(&self) -> &dyn Kernel {
        self
    }
}

/// What scripts call.
fn couple_all(a: Operator, g: f64) -> Fallible<Operator> {
    Ok(Coupled::uniform(&a, g)?)
}

const SCRIPT: &str = "
    let chain = tight_binding(lattice::chain(64), #{ hopping: -1.0 });
    let h = couple_all(chain, -1.5);
    print(h);
    // The coupling moves the state of k = 0 alone, from -2 to -3.5.
    let low = davidson(h, #{ count: 2, tol: 1e-10 });
    assert_close(low.values[0], -3.5, 1e-9);
    assert_close(low.values[1], -2.0 * cos(2.0 * PI / 64), 1e-9);
    print(`bound state at ${low.values[0]}`);
    let dos = kpm::dos(h, #{ moments: 512, vectors: 8, seed: 1 });
    assert_close(dos.density.integrate(dos.energy), 1.0, 1e-3);
";

pub fn main() -> ExitCode {
    let mut engine = match Engine::new() {
        Ok(engine) => engine,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    engine.rhai_mut().register_fn("couple_all", couple_all);
    match engine.eval(SCRIPT) {
        Ok(_) => ExitCode::SUCCESS,
        Err(report) => {
            eprintln!("{}", report.render(true));
            ExitCode::FAILURE
        }
    }
}
