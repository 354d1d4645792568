//! Calls from native code back into a script's functions. The numeric layers know only their own errors, so what the
//! function threw waits here until the native call returns, and then goes up unchanged.

use std::cell::RefCell;

use rhai::{Array, Dynamic, EvalAltResult, FLOAT, FnPtr, FuncArgs, NativeCallContext};

use super::failure::failure;
use super::own::is_closure;
use super::{Failure, Fallible};
use crate::error::{Error, Result};

/// The functions of a script, callable during one native call.
pub(crate) struct Callback<'a> {
    ctx: &'a NativeCallContext<'a>,
    thrown: RefCell<Option<Failure>>,
}

impl<'a> Callback<'a> {
    /// For the functions given to this call.
    pub fn new(ctx: &'a NativeCallContext<'a>) -> Self {
        Callback { ctx, thrown: RefCell::default() }
    }

    pub fn call(&self, f: &FnPtr, args: impl FuncArgs) -> Result<Dynamic> {
        f.call_within_context(self.ctx, args).map_err(|e| {
            *self.thrown.borrow_mut() = Some(self.explained(f, e));
            Error::input("the function failed")
        })
    }

    /// What Rhai says of functions that cannot be called from here, in words for their author.
    fn explained(&self, f: &FnPtr, e: Failure) -> Failure {
        let error = match &*e {
            EvalAltResult::ErrorFunctionNotFound(call, _)
                if is_closure(f.fn_name()) && call.starts_with(f.fn_name()) =>
            {
                let given = (call.matches(", ").count() + 1).saturating_sub(f.curry().len());
                let names = ["a", "b", "c", "d"].map(String::from);
                let like = names[..given.min(4)].join(", ");
                Error::input(format!("the function takes another number of arguments than {given}"))
                    .hint(format!("write it like |{like}| .."))
            }
            _ => return e,
        };
        failure(error, self.ctx.call_position())
    }

    /// Whether the function can take so many arguments.
    pub fn takes(&self, f: &FnPtr, arguments: usize) -> bool {
        let all = f.curry().len() + arguments;
        self.ctx.iter_namespaces().any(|module| module.get_script_fn(f.fn_name(), all).is_some())
    }

    /// The result of the native call, or what the script's function threw.
    pub fn finish<T>(self, result: Result<T>) -> Fallible<T> {
        match self.thrown.into_inner() {
            Some(thrown) => Err(thrown),
            None => Ok(result?),
        }
    }
}

/// A position, or any list of reals, as a script's function takes it: an array of floats.
pub(crate) fn floats(values: &[FLOAT]) -> Dynamic {
    values.iter().map(|&x| Dynamic::from_float(x)).collect::<Array>().into()
}
