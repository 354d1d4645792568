//! `Links` and the module `gauge`: SU(3) gauge fields, smearing, flow, observables and files.

use std::path::PathBuf;

use rhai::plugin::*;
use rhai::{Dynamic, Engine, FLOAT, INT, Map};

use super::lattice::boundaries_of;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::gauge::files::{self, Kind};
use crate::gauge::{self, Heatbath, Links};
use crate::lattice::Lattice;
use crate::number::{C64, Matrix, Series, Table};
use crate::operator::human_bytes;
use crate::output::files::atomic;
use crate::script::{At, Failure, Options, session};

/// Registers the type, the module and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Links>("Links");
    engine.register_static_module("gauge", exported_module!(gauge_module).into());
    engine.register_global_module(exported_module!(links_functions).into());
}

/// A direction of the lattice.
fn direction(mu: INT) -> Result<usize> {
    usize::try_from(mu).ok().filter(|mu| *mu < 4).ok_or_else(|| {
        Error::input(format!("direction {mu} of a gauge field")).hint("directions are numbered from 0 to 3")
    })
}

/// What fermions get for crossing boundaries, from the names of boundary conditions: one is that of time.
fn signs(value: &Dynamic) -> Result<[f64; 4]> {
    let wraps = boundaries_of(value)?;
    let sign = |wrap: &Wrap| match wrap {
        Wrap::Phase(p) if p.im == 0.0 && p.re.abs() == 1.0 => Ok(p.re),
        _ => Err(Error::input("fermions on a gauge field have periodic or antiperiodic boundaries")
            .hint("use \"periodic\" or \"antiperiodic\"")),
    };
    match &wraps[..] {
        [time] => Ok([1.0, 1.0, 1.0, sign(time)?]),
        [x, y, z, t] => Ok([sign(x)?, sign(y)?, sign(z)?, sign(t)?]),
        other => Err(Error::input(format!("{} boundaries for four directions", other.len()))
            .hint("give one for time, or an array of four")),
    }
}

/// The format of a file, by the option or the end of its name.
fn kind_of(o: &Options, path: &str) -> Result<Kind> {
    let by_name = if path.ends_with(".lime") || path.ends_with(".ildg") { "ildg" } else { "nersc" };
    match o.text_or("format", by_name)?.as_str() {
        "nersc" => Ok(Kind::Nersc { two_rows: false }),
        "nersc-12" => Ok(Kind::Nersc { two_rows: true }),
        "ildg" => Ok(Kind::Ildg),
        other => Err(Error::input(format!("no format `{other}` of gauge fields"))
            .hint("the formats are \"nersc\", \"nersc-12\" and \"ildg\"")),
    }
}

/// Whether the option `precision` asks for 32-bit numbers.
pub(super) fn single(o: &Options) -> Result<bool> {
    match o.text_or("precision", "double")?.as_str() {
        "double" => Ok(false),
        "single" => Ok(true),
        other => Err(Error::input(format!("no precision `{other}`"))
            .hint("the precisions are \"double\" and \"single\"")),
    }
}

#[export_module]
mod gauge_module {
    /// The unit gauge field: every link is the unit matrix. Where the lattice has an antiperiodic boundary, fermions do; one
    /// name makes all four boundaries of a lattice antiperiodic, and only that of time for a gauge field's own `boundary`.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(gauge::plaquette(gauge::unit(lattice::hypercubic(4, 4, 4, 4))), 1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn unit(ctx: NativeCallContext, lattice: Lattice) -> std::result::Result<Links, Failure> {
        Links::unit(&lattice).at(&ctx)
    }

    /// A gauge field of Haar-random links.
    ///
    /// # Options
    /// - `seed` (the session's): the key of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(4, 4, 4, 4), #{ seed: 1 });
    /// assert_close(gauge::plaquette(u), 0.0, 0.05);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random(
        ctx: NativeCallContext,
        lattice: Lattice,
        options: Map,
    ) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let seed = o.seed().at(&ctx)?;
        o.finish()?;
        Ok(Links::unit(&lattice).at(&ctx)?.random(seed))
    }

    #[rhai_fn(name = "random", return_raw)]
    pub fn random_plain(ctx: NativeCallContext, lattice: Lattice) -> std::result::Result<Links, Failure> {
        random(ctx, lattice, Map::new())
    }

    /// The reference field that anyone can write down: U = exp(i sum_a theta_a lambda_a) with the Gell-Mann matrices and
    /// theta_a = r (2 u - 1), where u is the first output of SplitMix64 for seed 2^40 + 32 site + 8 mu + a, taken to [0, 1).
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(gauge::plaquette(u), 0.721344433725904, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn reference_field(
        ctx: NativeCallContext,
        lattice: Lattice,
        r: FLOAT,
    ) -> std::result::Result<Links, Failure> {
        // Of larger phases no digit is right.
        if !(r.abs() <= 1e6) {
            return Err(Error::input(format!("a width r of {r:?}")).hint("it is 1e6 at most")).at(&ctx);
        }
        Ok(Links::unit(&lattice).at(&ctx)?.reference_field(r))
    }

    #[rhai_fn(name = "reference_field", return_raw)]
    pub fn reference_field_int(
        ctx: NativeCallContext,
        lattice: Lattice,
        r: INT,
    ) -> std::result::Result<Links, Failure> {
        reference_field(ctx, lattice, r as FLOAT)
    }

    /// A field diag(U, U^-1, 1) of constant abelian flux, of known topology: with m01 and m23 flux quanta its charge is
    /// 2 m01 m23, and the overlap operator on it has the index -2 m01 m23.
    ///
    /// # Options
    /// - `plane01` (0) to `plane23` (0): flux quanta through each plane, whole numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 });
    /// assert_close(gauge::plaquette(u), (1.0 + 2.0 * cos(PI() / 8.0)) / 9.0 + 2.0 / 3.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn constant_flux(
        ctx: NativeCallContext,
        lattice: Lattice,
        options: Map,
    ) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let planes = [
            ("plane01", (0, 1)),
            ("plane02", (0, 2)),
            ("plane03", (0, 3)),
            ("plane12", (1, 2)),
            ("plane13", (1, 3)),
            ("plane23", (2, 3)),
        ];
        let read = || -> Result<Links> {
            let mut quanta = Vec::new();
            for (key, plane) in planes {
                let Some(value) = o.value(key) else { continue };
                let m = value.as_int().map_err(|t| {
                    Error::input(format!("option `{key}` takes a whole number of flux quanta, not a {t}"))
                        .hint(format!("like `{key}: 1`"))
                })?;
                quanta.push((plane, m));
            }
            Links::unit(&lattice)?.constant_flux(&quanta)
        };
        let u = read().at(&ctx)?;
        o.finish()?;
        Ok(u)
    }

    /// The field after heatbath sweeps with the Wilson action: pseudo-heatbath over the SU(2) subgroups, each sweep followed
    /// by over-relaxation. The start is a field, or a lattice for a cold start. A field knows how many sweeps it has had, so
    /// that sweeps one by one are the same run as all at once.
    ///
    /// # Options
    /// - `beta`: 6/g^2; must be given.
    /// - `sweeps` (1): heatbath sweeps.
    /// - `overrelaxation` (0): over-relaxation sweeps after each.
    /// - `first` (the field's `sweeps`): number of the first sweep. A sweep of a number draws the same random numbers whenever
    ///   it is made.
    /// - `seed` (the session's): the key of the random numbers.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::heatbath(lattice::hypercubic(4, 4, 4, 4), #{ beta: 1.0, sweeps: 10, seed: 1, progress: false });
    /// assert_close(gauge::plaquette(u), 1.0 / 18.0 + 1.0 / 216.0, 0.03);   // strong coupling
    /// u = gauge::heatbath(u, #{ beta: 1.0, seed: 1, progress: false });
    /// assert(u.sweeps == 11, "ten and one");
    /// ```
    #[rhai_fn(name = "heatbath", return_raw)]
    pub fn heatbath_field(
        ctx: NativeCallContext,
        start: Links,
        options: Map,
    ) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let beta = o.float("beta")?.ok_or_else(|| {
                Error::input("a heatbath needs its coupling").hint("give `beta: 6.0`, which is 6/g^2")
            })?;
            let run = Heatbath {
                beta,
                sweeps: o.count_or("sweeps", 0, 1)?,
                overrelaxation: o.count_or("overrelaxation", 0, 0)?,
                seed: o.seed()?,
                first: o.count_or("first", 0, start.sweeps())?,
            };
            Ok((run, o.task()?))
        };
        let (run, task) = read().at(&ctx)?;
        o.finish()?;
        gauge::heatbath(&start, &run, &task).at(&ctx)
    }

    #[rhai_fn(name = "heatbath", return_raw)]
    pub fn heatbath_cold(
        ctx: NativeCallContext,
        lattice: Lattice,
        options: Map,
    ) -> std::result::Result<Links, Failure> {
        let start = Links::unit(&lattice).at(&ctx)?;
        heatbath_field(ctx, start, options)
    }

    /// The field in a random gauge: observables and spectra stay as they are.
    ///
    /// # Options
    /// - `seed` (the session's): the key of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(gauge::plaquette(gauge::random_gauge(u, #{ seed: 1 })), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random_gauge(
        ctx: NativeCallContext,
        u: Links,
        options: Map,
    ) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let seed = o.seed().at(&ctx)?;
        o.finish()?;
        Ok(u.random_gauge(seed))
    }

    #[rhai_fn(name = "random_gauge", return_raw)]
    pub fn random_gauge_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Links, Failure> {
        random_gauge(ctx, u, Map::new())
    }

    /// The plaquette: the mean of Re Tr/3 of all smallest loops.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 8), 0.3);
    /// assert_close(gauge::plaquette(u), 0.723057395899683, 1e-12);
    /// ```
    pub fn plaquette(u: Links) -> FLOAT {
        gauge::plaquette(&u)
    }

    /// The Polyakov loop: the mean of Tr/3 of the links once around the time direction, or `direction`.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(gauge::polyakov_loop(gauge::unit(lattice::hypercubic(2, 2, 2, 4))), 1.0, 1e-15);
    /// ```
    pub fn polyakov_loop(u: Links) -> C64 {
        gauge::polyakov(&u, 3)
    }

    #[rhai_fn(name = "polyakov_loop", return_raw)]
    pub fn polyakov_loop_along(
        ctx: NativeCallContext,
        u: Links,
        direction: INT,
    ) -> std::result::Result<C64, Failure> {
        Ok(gauge::polyakov(&u, super::direction(direction).at(&ctx)?))
    }

    /// The topological charge of the clover field strength. It nears an integer on smooth fields: smear or flow first.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 });
    /// assert_close(gauge::topological_charge(u), 1.899282407104, 1e-9);
    /// ```
    pub fn topological_charge(u: Links) -> FLOAT {
        gauge::topological_charge(&u)
    }

    /// Stout smearing (Morningstar, Peardon 2004).
    ///
    /// # Options
    /// - `rho` (0.1): weight of the staples.
    /// - `steps` (1): how often.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// assert(gauge::plaquette(gauge::stout(u, #{ rho: 0.1, steps: 2 })) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn stout(ctx: NativeCallContext, u: Links, options: Map) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let (rho, steps) = (o.float_or("rho", 0.1).at(&ctx)?, o.count_or("steps", 0, 1).at(&ctx)?);
        o.finish()?;
        gauge::stout(&u, rho, steps, &session(&ctx).at(&ctx)?.task(false)).at(&ctx)
    }

    #[rhai_fn(name = "stout", return_raw)]
    pub fn stout_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Links, Failure> {
        stout(ctx, u, Map::new())
    }

    /// APE smearing (Albanese et al. 1987): links mixed with their staples and projected back onto SU(3).
    ///
    /// # Options
    /// - `alpha` (0.5): weight of the six staples together.
    /// - `steps` (1): how often.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// assert(gauge::plaquette(gauge::ape(u, #{ steps: 2 })) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn ape(ctx: NativeCallContext, u: Links, options: Map) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let (alpha, steps) = (o.float_or("alpha", 0.5).at(&ctx)?, o.count_or("steps", 0, 1).at(&ctx)?);
        o.finish()?;
        gauge::ape(&u, alpha, steps, &session(&ctx).at(&ctx)?.task(false)).at(&ctx)
    }

    #[rhai_fn(name = "ape", return_raw)]
    pub fn ape_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Links, Failure> {
        ape(ctx, u, Map::new())
    }

    /// The Wilson flow (Luescher 2010): a map of the flowed field `links` and the `table` of flow time, plaquette, action
    /// density E (clover), t^2 E and topological charge.
    ///
    /// # Options
    /// - `time` (1.0): flow time in lattice units.
    /// - `step` (0.02): step of the third-order Runge-Kutta scheme.
    /// - `measure` (0): steps between two rows of the table; 0 for one row at the end.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// let flow = gauge::wilson_flow(u, #{ time: 0.2, step: 0.05, measure: 2, progress: false });
    /// assert(flow.table.rows == 2 && gauge::plaquette(flow.links) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wilson_flow(ctx: NativeCallContext, u: Links, options: Map) -> std::result::Result<Map, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let (time, step) = (o.float_or("time", 1.0)?, o.float_or("step", 0.02)?);
            Ok((time, step, o.count_or("measure", 0, 0)?, o.task()?))
        };
        let (time, step, measure, task) = read().at(&ctx)?;
        o.finish()?;
        let flow = || -> Result<Map> {
            let (links, rows) = gauge::wilson_flow(&u, time, step, measure, &task)?;
            let names = ["time", "plaquette", "energy", "t2_energy", "charge"];
            let column = |k: usize| Series::Real(rows.iter().map(|r| r[k]).collect());
            let table = Table::from_columns(names.into_iter().enumerate().map(|(k, n)| (n, column(k))))?;
            let mut map = Map::new();
            map.insert("links".into(), Dynamic::from(links));
            map.insert("table".into(), Dynamic::from(table));
            Ok(map)
        };
        flow().at(&ctx)
    }

    #[rhai_fn(name = "wilson_flow", return_raw)]
    pub fn wilson_flow_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Map, Failure> {
        wilson_flow(ctx, u, Map::new())
    }

    /// Loads a gauge field from a NERSC archive or an ILDG or SciDAC (lime) file; checksums are verified, and a note tells
    /// of a lime file without one.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// u.save("field.lime");
    /// assert_close(gauge::plaquette(gauge::load("field.lime")), gauge::plaquette(u), 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn load(ctx: NativeCallContext, file: &str) -> std::result::Result<Links, Failure> {
        let read = || {
            let saved = session(&ctx)?.output_path(file);
            let path: PathBuf = if saved.exists() { saved } else { file.into() };
            let bytes = std::fs::read(&path).map_err(|e| {
                let missing = e.kind() == std::io::ErrorKind::NotFound;
                let why = if missing { "there is no such file".to_string() } else { e.to_string() };
                Error::file(format!("cannot read `{file}`: {why}"))
                    .hint("paths are relative to the folder that the program was started in")
            })?;
            let loaded = files::decode(&bytes).map_err(|e| e.context(format!("`{file}`")))?;
            if let Some(note) = loaded.note {
                session(&ctx)?.note(&format!("`{file}`: {note}"));
            }
            Ok(loaded.links)
        };
        read().at(&ctx)
    }
}

#[export_module]
mod links_functions {
    /// Saves the field: `.lime` and `.ildg` files are ILDG, all others NERSC archives.
    ///
    /// # Options
    /// - `format` (by the name): "nersc", "nersc-12" (two rows of each link) or "ildg".
    /// - `precision` ("double"): or "single".
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 2, 2, 4), #{ seed: 1 });
    /// u.save("field.nersc", #{ format: "nersc-12" });
    /// assert_close(gauge::plaquette(gauge::load("field.nersc")), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_as(
        ctx: NativeCallContext,
        u: &mut Links,
        file: &str,
        options: Map,
    ) -> std::result::Result<(), Failure> {
        let o = Options::new(&ctx, options);
        let (kind, single) = (kind_of(&o, file).at(&ctx)?, single(&o).at(&ctx)?);
        o.finish()?;
        let path = session(&ctx).at(&ctx)?.output_path(file);
        atomic::bytes(&path, &files::encode(u, kind, single)).at(&ctx)
    }

    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save(ctx: NativeCallContext, u: &mut Links, file: &str) -> std::result::Result<(), Failure> {
        save_as(ctx, u, file, Map::new())
    }

    /// The same field with other boundaries for fermions: one for the time direction, or an array of four. (One name for a
    /// Lattice's `boundary` is for all directions.) Links and observables of the gauge field do not change.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let u = gauge::reference_field(lat, 0.3).boundary("antiperiodic");
    /// let psi = wilson::reference_spinor(lat, 2);
    /// assert_close(norm(wilson::operator(u, #{ mass: 0.0 }) * psi) ** 2.0, 40643.2535605869, 1e-7);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn boundary(
        ctx: NativeCallContext,
        u: &mut Links,
        boundary: Dynamic,
    ) -> std::result::Result<Links, Failure> {
        Ok(u.with_sign(signs(&boundary).at(&ctx)?))
    }

    /// Every link projected onto SU(3), by making its rows orthonormal.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 2, 2, 2), #{ seed: 1 });
    /// assert_close(gauge::plaquette(u.reunitarised()), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(global, pure)]
    pub fn reunitarised(u: &mut Links) -> Links {
        u.reunitarised()
    }

    /// The link of a site in a direction as a 3 x 3 Matrix.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(u.link(0, 0).at(0, 0), 0.931715695544985 - 0.119709622606562 * I, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn link(
        ctx: NativeCallContext,
        u: &mut Links,
        site: INT,
        direction: INT,
    ) -> std::result::Result<Matrix, Failure> {
        let build = || {
            let mu = super::direction(direction)?;
            let sites = u.sites();
            let site = usize::try_from(site).ok().filter(|&x| x < sites).ok_or_else(|| {
                Error::input(format!("site {site} of a lattice of {sites}"))
                    .hint(format!("sites are numbered from 0 to {}", sites - 1))
            })?;
            Matrix::new(3, 3, Series::Complex(u.at(site, mu).to_vec()))
        };
        build().at(&ctx)
    }

    /// Heatbath sweeps that the field has had; NERSC archives keep them as SEQUENCE_NUMBER.
    ///
    /// # Example
    /// ```rhai
    /// assert(gauge::unit(lattice::hypercubic(2, 2, 2, 4)).sweeps == 0, "none yet");
    /// ```
    #[rhai_fn(global, get = "sweeps", pure)]
    pub fn sweeps(u: &mut Links) -> INT {
        INT::try_from(u.sweeps()).unwrap_or(INT::MAX)
    }

    /// The lattice of the field.
    ///
    /// # Example
    /// ```rhai
    /// assert(gauge::unit(lattice::hypercubic(2, 2, 2, 4)).lattice.sites == 32, "32 sites");
    /// ```
    #[rhai_fn(global, get = "lattice", pure, return_raw)]
    pub fn lattice_of(ctx: NativeCallContext, u: &mut Links) -> std::result::Result<Lattice, Failure> {
        let wraps: Vec<Wrap> = u.sign().iter().map(|&s| Wrap::Phase(C64::new(s, 0.0))).collect();
        Lattice::hypercubic(&u.dims()).and_then(|l| l.boundary(&wraps)).at(&ctx)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times(ctx: NativeCallContext, u: Links, v: Links) -> std::result::Result<Links, Failure> {
        u.times(&v).at(&ctx)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(u: &mut Links) -> String {
        let [x, y, z, t] = u.dims();
        let turned: Vec<String> = (0..4).filter(|&d| u.sign()[d] < 0.0).map(|d| d.to_string()).collect();
        let boundary = match turned.is_empty() {
            true => String::new(),
            false => format!(", fermions antiperiodic in direction {}", turned.join(" and ")),
        };
        format!("Links {x} x {y} x {z} x {t}, SU(3), {}{boundary}", human_bytes(u.bytes()))
    }
}
