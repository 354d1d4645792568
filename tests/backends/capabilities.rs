//! What an operator can do, its multiples, shifts, adjoints, sums, products and polynomials can do: a table of
//! operators, one of wrappers and one of capabilities, every case compared with the dense matrix of the plain operator.

use umklapp::backend::{BlockVector, Device, Dots, Update};
use umklapp::gauge::Links;
use umklapp::lattice::{Lattice, Model, OrbitalBlock};
use umklapp::method::{Chebyshev, Expansion, Window, polynomial};
use umklapp::number::{C64, Matrix, Series};
use umklapp::operator::{MatrixFormat, Operator, SiteDiagonal, StoredMatrix, WilsonOperator};
use umklapp::task::Task;

use super::suite::{close, close_dots, number, sparse};

/// A dense matrix, row-major, and its velocities along x and y where the operator has them.
#[derive(Clone)]
struct Dense {
    n: usize,
    a: Vec<C64>,
    velocities: Option<Vec<Vec<C64>>>,
}

fn product(n: usize, a: &[C64], b: &[C64]) -> Vec<C64> {
    let entry = |i: usize, j: usize| (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
    (0..n * n).map(|at| entry(at / n, at % n)).collect()
}

fn add(a: &[C64], b: &[C64]) -> Vec<C64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn dagger(n: usize, a: &[C64]) -> Vec<C64> {
    (0..n * n).map(|at| a[at % n * n + at / n].conj()).collect()
}

impl Dense {
    fn of(h: &Operator, velocities: bool) -> Dense {
        let along = |axis| h.velocity(axis).expect("a velocity").to_dense().expect("its entries");
        let velocities = velocities.then(|| (0..2).map(along).collect());
        Dense { n: h.dim(), a: h.to_dense().expect("entries"), velocities }
    }

    /// The velocities that follow from those of the parts.
    fn with(&self, a: Vec<C64>, velocity: impl Fn(usize, &[C64]) -> Option<Vec<C64>>) -> Dense {
        let all = self.velocities.as_ref().and_then(|own| {
            own.iter().enumerate().map(|(axis, v)| velocity(axis, v)).collect::<Option<Vec<_>>>()
        });
        Dense { n: self.n, a, velocities: all }
    }

    fn scaled(&self, c: C64) -> Dense {
        let times = |a: &[C64]| a.iter().map(|z| z * c).collect::<Vec<_>>();
        self.with(times(&self.a), |_, v| Some(times(v)))
    }

    fn shifted(&self, c: C64) -> Dense {
        let mut a = self.a.clone();
        (0..self.n).for_each(|i| a[i * self.n + i] += c);
        self.with(a, |_, v| Some(v.to_vec()))
    }

    fn plus(&self, other: &Dense) -> Dense {
        let theirs = |axis: usize| other.velocities.as_ref().map(|v| &v[axis]);
        self.with(add(&self.a, &other.a), |axis, v| Some(add(v, theirs(axis)?)))
    }

    fn times(&self, other: &Dense) -> Dense {
        let n = self.n;
        self.with(product(n, &self.a, &other.a), |axis, v| {
            let theirs = &other.velocities.as_ref()?[axis];
            Some(add(&product(n, v, &other.a), &product(n, &self.a, theirs)))
        })
    }

    /// Models are Hermitian, so that i [A^+, x] is the adjoint of i [A, x].
    fn dagger(&self) -> Dense {
        self.with(dagger(self.n, &self.a), |_, v| Some(dagger(self.n, v)))
    }
}

fn c(re: f64, im: f64) -> C64 {
    C64::new(re, im)
}

/// A wrapper of an operator and of another one like it, and the same of dense matrices.
struct Wrapper {
    name: &'static str,
    wrap: fn(&Operator, &Operator) -> Operator,
    dense: fn(&Dense, &Dense) -> Dense,
    /// Whether rows, diagonal and velocities follow from those of the parts.
    entries: bool,
    /// Whether limits of the spectrum do, where all is Hermitian.
    limits: bool,
}

const SERIES: [f64; 4] = [0.3, -0.7, 0.2, 0.1];

/// The window of the series: wider than any spectrum here.
const WINDOW: Window = Window { center: 0.2, half_width: 20.0 };

const WRAPPERS: [Wrapper; 16] = [
    Wrapper { name: "h", wrap: |h, _| h.clone(), dense: |h, _| h.clone(), entries: true, limits: true },
    Wrapper {
        name: "1.0 * h",
        wrap: |h, _| h.scaled(c(1.0, 0.0)),
        dense: |h, _| h.clone(),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "-2.5 * h",
        wrap: |h, _| h.scaled(c(-2.5, 0.0)),
        dense: |h, _| h.scaled(c(-2.5, 0.0)),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "h + 0.3",
        wrap: |h, _| h.shifted(c(0.3, 0.0)).unwrap(),
        dense: |h, _| h.shifted(c(0.3, 0.0)),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "2 (0.5 h + 1) - 0.4",
        wrap: |h, _| {
            let inner = h.scaled(c(0.5, 0.0)).shifted(c(1.0, 0.0)).unwrap();
            inner.scaled(c(2.0, 0.0)).shifted(c(-0.4, 0.0)).unwrap()
        },
        dense: |h, _| h.shifted(c(1.6, 0.0)),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "(0.5 - 2i) h + i",
        wrap: |h, _| h.scaled(c(0.5, -2.0)).shifted(c(0.0, 1.0)).unwrap(),
        dense: |h, _| h.scaled(c(0.5, -2.0)).shifted(c(0.0, 1.0)),
        entries: true,
        limits: false,
    },
    Wrapper {
        name: "h^+",
        wrap: |h, _| h.adjoint().unwrap(),
        dense: |h, _| h.dagger(),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "(2i h + 1)^+",
        wrap: |h, _| h.scaled(c(0.0, 2.0)).shifted(c(1.0, 0.0)).unwrap().adjoint().unwrap(),
        dense: |h, _| h.scaled(c(0.0, 2.0)).shifted(c(1.0, 0.0)).dagger(),
        entries: true,
        limits: false,
    },
    Wrapper {
        name: "h^++",
        wrap: |h, _| h.adjoint().unwrap().adjoint().unwrap(),
        dense: |h, _| h.clone(),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "h + 0.5 g",
        wrap: |h, g| h.plus(&g.scaled(c(0.5, 0.0))).unwrap(),
        dense: |h, g| h.plus(&g.scaled(c(0.5, 0.0))),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "3 (h - g + 0.1) + h",
        wrap: |h, g| {
            let difference = h.plus(&g.scaled(c(-1.0, 0.0))).unwrap().shifted(c(0.1, 0.0)).unwrap();
            difference.scaled(c(3.0, 0.0)).plus(h).unwrap()
        },
        dense: |h, g| h.scaled(c(4.0, 0.0)).plus(&g.scaled(c(-3.0, 0.0))).shifted(c(0.3, 0.0)),
        entries: true,
        limits: true,
    },
    Wrapper {
        name: "(h + i g)^+",
        wrap: |h, g| h.plus(&g.scaled(c(0.0, 1.0))).unwrap().adjoint().unwrap(),
        dense: |h, g| h.plus(&g.scaled(c(0.0, 1.0))).dagger(),
        entries: true,
        limits: false,
    },
    Wrapper {
        name: "-2 h 0.5 h",
        wrap: |h, _| h.scaled(c(-2.0, 0.0)).times(&h.scaled(c(0.5, 0.0))).unwrap(),
        dense: |h, _| h.times(h).scaled(c(-1.0, 0.0)),
        entries: true,
        limits: false,
    },
    Wrapper {
        name: "(h + 0.2) g",
        wrap: |h, g| h.shifted(c(0.2, 0.0)).unwrap().times(g).unwrap(),
        dense: |h, g| h.shifted(c(0.2, 0.0)).times(g),
        entries: true,
        limits: false,
    },
    Wrapper {
        name: "(h g)^+ + h",
        wrap: |h, g| h.times(g).unwrap().adjoint().unwrap().plus(h).unwrap(),
        dense: |h, g| h.times(g).dagger().plus(h),
        entries: true,
        limits: false,
    },
    Wrapper {
        name: "2 p(h)",
        wrap: |h, _| {
            let coefficients = SERIES.iter().map(|&x| c(x, 0.0)).collect();
            polynomial(h, &Expansion { window: WINDOW, coefficients }).unwrap().scaled(c(2.0, 0.0))
        },
        dense: |h, _| {
            let x = h.shifted(c(-WINDOW.center, 0.0)).scaled(c(1.0 / WINDOW.half_width, 0.0));
            let mut before = h.scaled(C64::ZERO).shifted(c(1.0, 0.0));
            let mut sum = before.scaled(c(SERIES[0], 0.0));
            let mut now = x.clone();
            for factor in &SERIES[1..] {
                sum = sum.plus(&now.scaled(c(*factor, 0.0)));
                let next = x.times(&now).scaled(c(2.0, 0.0)).plus(&before.scaled(c(-1.0, 0.0)));
                (before, now) = (now, next);
            }
            sum.scaled(c(2.0, 0.0))
        },
        entries: false,
        limits: false,
    },
];

/// An operator, and what is known of it.
struct Plain {
    name: &'static str,
    h: Operator,
    /// Another one on the same vectors that knows as much.
    g: Operator,
    rows: bool,
    diagonal: bool,
    limits: bool,
    model: bool,
}

fn model(flux: f64, seed: u64) -> Model {
    let lattice = Lattice::square(5, 4).expect("a lattice");
    let mut model = Model::new(lattice, 1).expect("a model");
    model.nearest(&OrbitalBlock::new(1, vec![c(-1.0, 0.0)]).unwrap()).unwrap();
    model.disorder(1.5, seed).unwrap();
    if flux != 0.0 {
        model.flux(flux, 0, 1).unwrap();
    }
    model
}

/// The operators that a program is made of, in several formats.
fn operators(device: &Device) -> Vec<Plain> {
    let of_model = |name, flux, format, single| {
        let build =
            |seed| Operator::of_model(device, &model(flux, seed), format, single).expect("an operator");
        Plain { name, h: build(1), g: build(2), rows: true, diagonal: true, limits: true, model: true }
    };
    let stored = |seed| {
        let csr = sparse(umklapp::number::DType::C64, 23, 23, 5, seed, false);
        StoredMatrix::from_csr(device, csr, MatrixFormat::Ell).expect("an operator")
    };
    let u = Links::unit(&Lattice::hypercubic(&[2, 2, 2, 2]).unwrap()).unwrap().random(3).unwrap();
    let wilson = |mass: f64, gamma5| {
        let spec = u.wilson(mass, gamma5, umklapp::backend::matrix::wilson::Compression::Full, false);
        WilsonOperator::build(device, spec.expect("links")).expect("an operator")
    };
    let spinors = wilson(-1.4, true).rows();
    let diagonal = |factors: [f64; 2]| {
        let factors = [[factors[0]; 6], [factors[1]; 6]].concat();
        SiteDiagonal::build(device, spinors, factors, false).expect("an operator")
    };
    vec![
        of_model("a stencil", 0.0, MatrixFormat::Stencil, false),
        of_model("a stencil of 32 bits", 0.0, MatrixFormat::Stencil, true),
        of_model("compressed rows of complex hoppings", 0.2, MatrixFormat::Csr, false),
        of_model("slices", 0.2, MatrixFormat::Sell { chunk: 4, sigma: 8 }, false),
        Plain {
            name: "rows that are not Hermitian",
            h: stored(4),
            g: stored(5),
            rows: true,
            diagonal: true,
            limits: true,
            model: false,
        },
        Plain {
            name: "a Wilson kernel",
            h: wilson(-1.4, true),
            g: wilson(-1.2, true),
            rows: false,
            diagonal: false,
            limits: true,
            model: false,
        },
        Plain {
            name: "a Wilson operator",
            h: wilson(-1.4, false),
            g: wilson(-1.2, false),
            rows: false,
            diagonal: false,
            limits: false,
            model: false,
        },
        Plain {
            name: "a diagonal on sites",
            h: diagonal([1.0, -0.5]),
            g: diagonal([0.3, 0.7]),
            rows: true,
            diagonal: true,
            limits: true,
            model: false,
        },
    ]
}

/// A case of the table: an operator, and what it should be.
struct Case<'a> {
    what: String,
    plain: &'a Plain,
    wrapper: &'a Wrapper,
    h: Operator,
    dense: Dense,
    eps: f64,
}

impl Case<'_> {
    /// A block of numbers for products, on the device and on the host.
    fn block(&self, columns: usize, seed: u64) -> (BlockVector, Vec<C64>) {
        let dtype = self.h.dtype();
        let numbers: Vec<C64> =
            (0..self.dense.n * columns).map(|i| number(seed, i, dtype.is_complex())).collect();
        let device = self.h.device();
        let v = device.upload(dtype, self.h.rows(), columns, &numbers).expect("a block");
        let host = device.download(&v).expect("its numbers");
        (v, host)
    }

    /// `alpha A v + beta v + gamma w` of the dense matrix.
    fn expected(&self, u: Update, v: &[C64], w: &[C64], columns: usize) -> Vec<C64> {
        let n = self.dense.n;
        let entry = |at: usize| {
            let (row, k) = (at / columns, at % columns);
            let sum: C64 = (0..n).map(|j| self.dense.a[row * n + j] * v[j * columns + k]).sum();
            sum * u.alpha + v[at] * u.beta + if u.gamma == 0.0 { C64::ZERO } else { w[at] * u.gamma }
        };
        (0..n * columns).map(entry).collect()
    }

    fn numbers(&self, v: &BlockVector) -> Vec<C64> {
        self.h.device().download(v).expect("numbers")
    }

    fn hermitian(&self) -> bool {
        let other = dagger(self.dense.n, &self.dense.a);
        self.dense.a.iter().zip(&other).all(|(a, b)| (a - b).norm() < 1e-5)
    }
}

type Capability = (&'static str, fn(&Case<'_>));

const CAPABILITIES: [Capability; 13] = [
    ("entries of all products", |case| {
        close(&case.h.to_dense().expect("products"), &case.dense.a, case.eps, &case.what);
    }),
    ("scalar type", |case| {
        let complex = case.dense.a.iter().any(|z| z.im != 0.0);
        assert!(case.h.dtype().is_complex() || !complex, "{}", case.what);
        assert_eq!(case.h.dtype().is_single(), case.plain.h.dtype().is_single(), "{}", case.what);
        let real = case.wrapper.name.contains('i') || case.plain.h.dtype().is_complex();
        assert!(real || !case.h.dtype().is_complex(), "{}: complex without need", case.what);
    }),
    ("passes over several columns, with their products", |case| {
        for columns in [1, 3, 8] {
            let u = Update { alpha: -0.7, beta: 0.4, gamma: 1.2 };
            let ((v, x), (mut w, y)) = (case.block(columns, 1), case.block(columns, 2));
            let mut dots = Dots::default();
            case.h.update(u, &v, &mut w, Some(&mut dots)).expect("a pass");
            let found = case.numbers(&w);
            close(&found, &case.expected(u, &x, &y, columns), case.eps, &case.what);
            close_dots(&dots, &x, &found, columns, case.eps, &case.what);
        }
    }),
    ("passes that add vectors", |case| {
        let u = Update { alpha: 0.9, beta: -0.3, gamma: 0.5 };
        let ((v, x), (mut w, y), (z, zs)) = (case.block(3, 1), case.block(3, 2), case.block(3, 3));
        case.h.update_plus(u, &v, &mut w, &[(0.25, &z), (-1.5, &v)]).expect("a pass");
        let more = case.expected(u, &x, &y, 3);
        let expected: Vec<C64> = (0..more.len()).map(|i| more[i] + zs[i] * 0.25 - x[i] * 1.5).collect();
        close(&case.numbers(&w), &expected, case.eps, &case.what);
    }),
    ("the recurrence", |case| {
        let (mut v, mut x) = case.block(2, 1);
        let (mut w, mut y) = case.block(2, 2);
        let (alpha, beta) = (0.05, 0.02);
        let mut dots = Vec::new();
        case.h.recurrence((alpha, beta), &mut v, &mut w, 5, &mut dots).expect("orders");
        assert_eq!(dots.len(), 5, "{}", case.what);
        for of_step in &dots {
            y = case.expected(Update { alpha, beta, gamma: -1.0 }, &x, &y, 2);
            close_dots(of_step, &x, &y, 2, 10.0 * case.eps, &case.what);
            std::mem::swap(&mut x, &mut y);
        }
        close(&case.numbers(&v), &x, 10.0 * case.eps, &case.what);
        close(&case.numbers(&w), &y, 10.0 * case.eps, &case.what);
    }),
    ("writing without reading", |case| {
        assert!(case.h.overwrites(), "{}", case.what);
        let (v, x) = case.block(3, 1);
        let nan = vec![C64::new(f64::NAN, 0.0); x.len()];
        let mut w = case.h.device().upload(v.dtype(), v.rows(), 3, &nan).expect("a block");
        let u = Update { alpha: 1.5, beta: 0.5, gamma: 0.0 };
        case.h.update(u, &v, &mut w, None).expect("a pass");
        close(&case.numbers(&w), &case.expected(u, &x, &nan, 3), case.eps, &case.what);
    }),
    ("the adjoint, and that of the adjoint", |case| {
        let adjoint = case.h.adjoint().expect("an adjoint");
        let entries = adjoint.to_dense().expect("products");
        close(&entries, &dagger(case.dense.n, &case.dense.a), case.eps, &case.what);
        let back = adjoint.adjoint().expect("an adjoint");
        close(&back.to_dense().expect("products"), &case.dense.a, case.eps, &case.what);
        assert_eq!(back.dtype(), case.h.dtype(), "{}", case.what);
    }),
    ("whether it is Hermitian", |case| {
        assert_eq!(case.h.is_hermitian().expect("an answer"), case.hermitian(), "{}", case.what);
    }),
    ("rows", |case| {
        let (n, known) = (case.dense.n, case.plain.rows && case.wrapper.entries);
        for row in 0..n {
            let mut entries = Vec::new();
            assert_eq!(case.h.row(row, &mut entries), known, "{}", case.what);
            if known {
                assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "{}: row {row}", case.what);
                let mut full = vec![C64::ZERO; n];
                entries.iter().for_each(|&(column, value)| full[column] += value);
                close(&full, &case.dense.a[row * n..][..n], case.eps, &case.what);
            }
        }
    }),
    ("the diagonal", |case| {
        let expected: Vec<C64> = (0..case.dense.n).map(|i| case.dense.a[i * (case.dense.n + 1)]).collect();
        match case.h.diagonal() {
            Some(found) => close(&found, &expected, case.eps, &case.what),
            None => assert!(!(case.plain.diagonal && case.wrapper.entries), "{}", case.what),
        }
    }),
    ("limits of the spectrum", |case| {
        if !case.hermitian() {
            return;
        }
        let Some((low, high)) = case.h.limits() else {
            assert!(!(case.plain.limits && case.wrapper.limits), "{}", case.what);
            return;
        };
        let dense = Matrix::new(case.dense.n, case.dense.n, Series::Complex(case.dense.a.clone())).unwrap();
        let (values, _) = dense.eigh().expect("eigenvalues");
        let values = values.as_real("eigenvalues").expect("real").to_vec();
        let slack = case.eps * low.abs().max(high.abs());
        assert!(low <= values[0] + slack && high >= values[values.len() - 1] - slack, "{}", case.what);
    }),
    ("velocities and the lattice", |case| {
        let known = case.plain.model && case.wrapper.entries;
        assert_eq!(case.h.geometry().is_some(), case.plain.model, "{}", case.what);
        for axis in 0..2 {
            match case.h.velocity(axis) {
                Ok(v) => {
                    let expected = &case.dense.velocities.as_ref().expect("velocities")[axis];
                    close(&v.to_dense().expect("products"), expected, case.eps, &case.what);
                    assert!(v.geometry().is_some(), "{}", case.what);
                }
                Err(_) => assert!(!known, "{}: no velocity", case.what),
            }
        }
    }),
    ("what it costs, and whether it is recorded", |case| {
        let (own, plain) = (case.h.info(), case.plain.h.info());
        // Rows of an adjoint may need other padding, so that its bytes are others.
        assert!(own.entries >= plain.entries && (own.bytes > 0) == (plain.bytes > 0), "{}", case.what);
        assert!(!own.format.is_empty() && case.h.summary().contains(&own.format), "{}", case.what);
        let multiple = ["h", "1.0 * h", "-2.5 * h", "h + 0.3", "2 (0.5 h + 1) - 0.4", "h^++", "h + 0.5 g"];
        if multiple.contains(&case.wrapper.name) {
            assert_eq!(case.h.recordable(), case.plain.h.recordable(), "{}", case.what);
        }
    }),
];

/// Every capability of every wrapper of every operator.
pub fn wrappers(device: &Device) {
    for plain in operators(device) {
        let (h, g) = (Dense::of(&plain.h, plain.model), Dense::of(&plain.g, plain.model));
        for wrapper in &WRAPPERS {
            let eps = if plain.h.dtype().is_single() { 2e-4 } else { 1e-11 };
            let dense = (wrapper.dense)(&h, &g);
            let wrapped = (wrapper.wrap)(&plain.h, &plain.g);
            for (name, check) in CAPABILITIES {
                let what = format!("{name} of {} of {}", wrapper.name, plain.name);
                let (h, dense) = (wrapped.clone(), dense.clone());
                check(&Case { what, plain: &plain, wrapper, h, dense, eps });
            }
        }
    }
}

/// Moments of a multiple or a shifted operator are those of the operator in the window that moved with it.
pub fn moments(device: &Device) {
    for format in [MatrixFormat::Stencil, MatrixFormat::Csr] {
        let flux = if format == MatrixFormat::Csr { 0.2 } else { 0.0 };
        let h = Operator::of_model(device, &model(flux, 7), format, false).expect("an operator");
        let start: Vec<C64> = (0..2 * h.dim()).map(|i| number(9, i, h.dtype().is_complex())).collect();
        let v = device.upload(h.dtype(), h.rows(), 2, &start).expect("a block");
        let moments = |h: &Operator, center: f64, half_width: f64| {
            let mut run = Chebyshev::new(h, Window { center, half_width }, v.clone()).expect("a window");
            run.run(40, &Task::default()).expect("moments");
            run.moments().expect("moments").values().to_vec()
        };
        let plain = moments(&h, 0.1, 6.0);
        let times = |x: f64| h.scaled(c(x, 0.0));
        let plus = |h: &Operator, x: f64| h.shifted(c(x, 0.0)).expect("a square operator");
        assert_eq!(moments(&times(1.0), 0.1, 6.0), plain);
        for (what, found) in [
            ("h + 0.3", moments(&plus(&h, 0.3), 0.4, 6.0)),
            ("2 h", moments(&times(2.0), 0.2, 12.0)),
            ("2 h - 0.7", moments(&plus(&times(2.0), -0.7), -0.5, 12.0)),
        ] {
            let off = found.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-13, "{what} in {format:?}: {off:e}");
        }
    }
}
