//! The tour: a first walk through the program. Each step says something and runs a piece of script, which the reader
//! can change and run again.

use super::session::{AfterInput, ReplSession};
use crate::error::Error;

/// What a step says, and what it runs.
const STEPS: [(&str, &str); 9] = [
    (
        "Welcome. Each `tour()` is a step: it explains something and runs the line after the `>`.
Change the line and run it yourself; the tour waits. It makes the variables x, s, h, dos, chain, gs and t.

Values are printed without `print`; a semicolon at the end suppresses this. `let` defines a variable.",
        "let x = 2.0 ** 10",
    ),
    (
        "A list of numbers is a Series. Functions act on all its elements; methods are called after a dot.
After `s.` the Tab key shows the methods of a Series, `help(\"Series\")` explains them.",
        "let s = linspace(0.0, PI, 5); sin(s).integrate(s)",
    ),
    (
        "A model is a lattice and its hoppings. This one is graphene, with some disorder: 32768 sites.",
        "let h = tight_binding(lattice::honeycomb(128, 128), #{ hopping: -2.7, disorder: 0.5, seed: 1 })",
    ),
    (
        "How many states are there at each energy? Options are written in `#{ .. }`, after the other arguments. \
         `?kpm::dos`
lists the options of a function, and Tab proposes them.",
        "let dos = kpm::dos(h, #{ broadening: 0.3, vectors: 2, seed: 1 })",
    ),
    (
        "A picture. `plot(dos, #{ file: \"dos.svg\" })` writes it to a file, `dos.save(\"dos.csv\")` writes the \
         numbers.",
        "plot(dos, #{ title: \"Graphene\" })",
    ),
    (
        "Interacting particles: the ground state of 16 spins, by the density-matrix renormalisation group.",
        "let chain = sites(\"S=1/2\", 16);
let gs = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ Sz: 0.0 }, states: [32, 64], sweeps: 4, seed: 1 \
         });
gs.energy",
    ),
    (
        "Is it right? Compute the number in a second way: sixteen spins can be solved exactly.",
        "assert_close(davidson(exact::operator(models::heisenberg(chain), chain, #{ Sz: 0.0 }), #{ seed: 1 \
         }).values[0], gs.energy, 1e-6)",
    ),
    (
        "Loops, conditions and functions look as in most languages. Functions see only their parameters.",
        "fn ring(n) { let chain = sites(\"S=1/2\", n); davidson(exact::operator(models::heisenberg(chain, #{ \
         periodic: true }), chain, #{ Sz: 0.0 }), #{ seed: 1 }).values[0] / n }
let t = table([[\"sites\", [4, 6, 8, 10]], [\"energy a site\", [4, 6, 8, 10].map(|n| ring(n))]])",
    ),
    (
        "The exact energy per site of the infinite chain is 1/4 - ln 2. That was the tour. From here:

  examples(\"band structure\")  scripts that answer a question
  lookfor word, ?name          functions, and their pages
  %save FILE                   what you typed, as a script; `umklapp run FILE` runs it
  whos, %history               what you have, what you did",
        "0.25 - ln(2.0)",
    ),
];

impl ReplSession {
    /// The next step of the tour, or the one of this number, from 1.
    pub fn tour(&mut self, step: Option<usize>) -> AfterInput {
        let place = match step {
            None => self.toured % STEPS.len(),
            Some(step) if (1..=STEPS.len()).contains(&step) => step - 1,
            Some(step) => {
                return self.fail(
                    &Error::input(format!("the tour has no step {step}"))
                        .hint(format!("it has {}; `tour(1)` begins", STEPS.len())),
                );
            }
        };
        let (words, code) = STEPS[place];
        let shown = code.replace('\n', "\n  ");
        self.say(&format!("[{} of {}] {words}\n\n> {shown}", place + 1, STEPS.len()));
        let done = self.script(code, 1);
        if let AfterInput::Next = done {
            self.toured = place + 1;
            if self.toured < STEPS.len() {
                self.say("\n`tour()` goes on");
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::Engine;

    #[test]
    fn every_step_runs() {
        let mut session = ReplSession::new(Engine::new().unwrap(), false);
        let said = Rc::new(RefCell::new(String::new()));
        let heard = said.clone();
        session
            .engine
            .session()
            .set_printer(Box::new(move |text| heard.borrow_mut().push_str(&format!("{text}\n"))));
        for _ in 0..STEPS.len() {
            assert!(matches!(session.take("tour()", 1), AfterInput::Next), "{}", said.borrow());
        }
        let text = said.borrow().clone();
        assert!(
            text.contains("x = 1024.0\n") && text.contains("gs.energy\n-6.9117") && text.contains("[9 of 9]"),
            "{text}"
        );
        // After the last step the tour begins again. A step that does not exist is an error.
        assert!(matches!(session.take("tour(10)", 1), AfterInput::Failed(_)));
        assert!(matches!(session.take("tour()", 1), AfterInput::Next));
        assert!(said.borrow().ends_with("`tour()` goes on\n"));
        // A function of the user's own comes first.
        session.take("fn tour() { 7 }", 1);
        session.take("tour()", 1);
        assert!(said.borrow().ends_with("\n7\n"), "{}", said.borrow());
    }
}
