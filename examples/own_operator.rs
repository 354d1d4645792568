//! An own operator: hopping from every site to every other, which as a matrix would be dense, beside a sparse one.
//! Registered for scripts, it works in every method of the library.
//!
//! `cargo run --release --example own_operator`

use std::process::ExitCode;
use std::sync::Arc;

use umklapp::Engine;
use umklapp::backend::{BlockVector, Device, Dots, Rows, Update};
use umklapp::error::{Error, Result};
use umklapp::number::{C64, DType};
use umklapp::operator::{LinearOperator, Operator};
use umklapp::script::Fallible;

/// `A + g |u><u|` with the normalised vector `u`.
#[derive(Clone)]
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
        let coupled = Coupled { a: a.clone(), g, u };
        Ok(Operator::from_node(a.device().clone(), Arc::new(coupled)).on(a.geometry().cloned()))
    }
}

impl LinearOperator for Coupled {
    fn rows(&self) -> Rows {
        self.a.rows()
    }

    fn cols(&self) -> usize {
        self.a.cols()
    }

    fn dtype(&self) -> DType {
        self.a.dtype()
    }

    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        self.a.update(c, v, w, None)?;
        let u = device.convert(&self.u, v.dtype())?;
        let mut overlaps = device.gram(&u, v)?;
        overlaps.iter_mut().for_each(|x| *x *= c.alpha * self.g);
        device.combine(&u, &overlaps, 1.0, w)?;
        if let Some(dots) = dots {
            dots.vv = device.dots(v, v)?.iter().map(|z| z.re).collect();
            dots.wv = device.dots(w, v)?.iter().map(|z| z.re).collect();
        }
        Ok(())
    }

    fn adjoint(&self, device: &Device) -> Result<Operator> {
        let adjoint = Coupled { a: self.a.adjoint()?, ..self.clone() };
        Ok(Operator::from_node(device.clone(), Arc::new(adjoint)))
    }

    fn is_hermitian(&self, _: &Device) -> Result<bool> {
        self.a.is_hermitian()
    }

    fn describe(&self) -> String {
        format!("{} and all sites coupled", self.a.node().describe())
    }

    fn bytes(&self) -> usize {
        self.a.node().bytes() + self.u.bytes()
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
    assert_close(low.values[1], -2.0 * cos(2.0 * PI() / 64), 1e-9);
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
