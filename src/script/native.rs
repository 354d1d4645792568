//! How native functions are made known to the language: what `#[export_module(root = "crate::script::native")]` finds
//! in place of Rhai's own. A function whose last parameter is [`Options`] takes a map in scripts, checked against what
//! its doc comment declares, and can be called without; every error takes the position of the call.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

pub use rhai::{Dynamic, FnNamespace, ImmutableString, Module, NativeCallContext, plugin};
use rhai::{EvalAltResult, FLOAT, INT, Map, Position, RhaiFunc, plugin::PluginFunc, plugin::RhaiResult};

use super::declaration::Declared;
use super::options::Options;
use super::registry;
use crate::number::{Matrix, Series, Table, memory};

/// A float for which scripts may write a whole number.
pub type Float = FLOAT;

/// What is known of a function while it is registered, as in Rhai's type of that name.
pub struct FuncRegistration {
    name: &'static str,
    namespace: FnNamespace,
    /// The parameters, and the type that is returned.
    signature: &'static [&'static str],
    comments: Vec<&'static str>,
}

thread_local! {
    /// The comments of the functions registered in the module at hand:
    /// overloads that declare no options share their namesake's.
    static COMMENTS: RefCell<BTreeMap<&'static str, Vec<&'static str>>> = const { RefCell::new(BTreeMap::new()) };
}

impl FuncRegistration {
    /// A function of this name.
    pub fn new(name: &'static str) -> Self {
        FuncRegistration { name, namespace: FnNamespace::Internal, signature: &[], comments: Vec::new() }
    }

    /// Whether it can be called without its module's name.
    pub fn with_namespace(self, namespace: FnNamespace) -> Self {
        FuncRegistration { namespace, ..self }
    }

    /// Its parameters as Rust writes them, and last what it returns.
    pub fn with_params_info(self, signature: &'static [&'static str]) -> Self {
        FuncRegistration { signature, ..self }
    }

    pub fn with_comments(self, comments: &[&'static str]) -> Self {
        FuncRegistration { comments: comments.to_vec(), ..self }
    }

    /// Puts the function into a module, and where it takes options also its shorter form.
    pub fn set_into_module_raw(self, module: &mut Module, types: &[TypeId], function: RhaiFunc) {
        let RhaiFunc::Plugin { func: inner } = function else { return };
        if module.is_empty() {
            COMMENTS.with(|known| known.borrow_mut().clear());
        }
        if self.comments.iter().any(|line| line.contains("# Options")) {
            COMMENTS.with(|known| known.borrow_mut().insert(self.name, self.comments.clone()));
        }
        let mut types = types.to_vec();
        let mut signature = self.signature.to_vec();
        let mut way = OptionsForm::Plain;
        if types.last() == Some(&TypeId::of::<Options>()) {
            let own = COMMENTS.with(|known| known.borrow().get(self.name).cloned());
            let declared = Rc::new(Declared::new(registry::doc(own.unwrap_or_default().into_iter())));
            types.pop();
            let returned = signature.pop();
            signature.pop();
            if !declared.requires() {
                let short: Vec<&str> = signature.iter().copied().chain(returned).collect();
                let way = OptionsForm::Without(declared.clone());
                let native = Native { inner: inner.clone(), way, whole: Vec::new(), sets: None };
                self.register(module, &types, &short, &[], native);
            }
            types.push(TypeId::of::<Map>());
            signature.push("options: Map");
            signature.extend(returned);
            way = OptionsForm::With(declared);
        }
        let sets = ["set$", "index$set$"].iter().any(|begin| self.name.starts_with(begin));
        let native = Native { inner, way, whole: Vec::new(), sets: sets.then_some(self.name) };
        self.register(module, &types, &signature, &self.comments, native);
    }

    /// Registers a function, and forms of it with whole numbers where it has parameters of type [`Float`].
    fn register(
        &self,
        module: &mut Module,
        types: &[TypeId],
        signature: &[&str],
        comments: &[&str],
        native: Native,
    ) {
        let named = rhai::FuncRegistration::new(self.name).with_namespace(self.namespace);
        // What the context is has no type of an argument.
        let parameters = signature.iter().filter(|p| !p.contains("NativeCallContext")).enumerate();
        let real: Vec<usize> = parameters.filter(|(_, p)| p.ends_with(": Float")).map(|(k, _)| k).collect();
        for some in 1..1_usize << real.len() {
            let whole: Vec<usize> =
                real.iter().enumerate().filter(|(k, _)| some >> k & 1 == 1).map(|(_, at)| *at).collect();
            let mut types = types.to_vec();
            whole.iter().for_each(|&at| types[at] = TypeId::of::<INT>());
            let native = Native { whole, ..native.clone() };
            named.clone().with_params_info([registry::WHOLE]).set_into_module_raw(
                module,
                &types,
                native.into(),
            );
        }
        named.with_params_info(signature).with_comments(comments).set_into_module_raw(
            module,
            types,
            native.into(),
        );
    }
}

/// How a function comes to its options.
#[derive(Clone)]
enum OptionsForm {
    /// It has none.
    Plain,
    /// The last argument is a map of them.
    With(Rc<Declared>),
    /// They are left out.
    Without(Rc<Declared>),
}

/// A native function as scripts call it.
#[derive(Clone)]
struct Native {
    inner: Rc<dyn PluginFunc>,
    way: OptionsForm,
    /// The arguments that are whole numbers and become floats.
    whole: Vec<usize>,
    /// Its name, if it sets a property or an element.
    sets: Option<&'static str>,
}

impl PluginFunc for Native {
    fn call(&self, context: Option<NativeCallContext>, args: &mut [&mut Dynamic]) -> RhaiResult {
        let position = context.as_ref().map(NativeCallContext::call_position);
        // Memory that was refused inside the function is an error of this call. Other panics go on.
        let result =
            catch_unwind(AssertUnwindSafe(|| self.call_inner(context, args))).unwrap_or_else(|panic| {
                let Some(error) = memory::panic_of_memory(&*panic) else { resume_unwind(panic) };
                memory::forget_refusal();
                Err(error.into())
            });
        // Rhai itself leaves errors of module functions without a position.
        result.map_err(|mut failure| {
            if failure.position().is_none() {
                failure.set_position(position.unwrap_or_default());
            }
            failure
        })
    }

    fn is_method_call(&self) -> bool {
        self.inner.is_method_call()
    }

    fn has_context(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        // Those that set something see to constants themselves.
        self.sets.is_some() || self.inner.is_pure()
    }

    fn is_volatile(&self) -> bool {
        self.inner.is_volatile()
    }
}

/// Whether two values of a type that scripts can change are the same.
fn same(a: &Dynamic, b: &Dynamic) -> bool {
    fn both<T: Clone + 'static>(a: &Dynamic, b: &Dynamic, same: impl Fn(&T, &T) -> bool) -> Option<bool> {
        Some(same(&*a.read_lock::<T>()?, &*b.read_lock::<T>()?))
    }
    let matrices =
        |a: &Matrix, b: &Matrix| (a.rows(), a.cols()) == (b.rows(), b.cols()) && a.data().is(b.data());
    both(a, b, Table::is).or_else(|| both(a, b, Series::is)).or_else(|| both(a, b, matrices)).unwrap_or(false)
}

impl Native {
    /// Sets a property or an element of a constant: the language does so after each method call on it, with the value
    /// that is there. Another value is refused.
    fn written_back(
        &self,
        name: &str,
        context: Option<NativeCallContext>,
        args: &mut [&mut Dynamic],
    ) -> RhaiResult {
        let mut changed = args[0].clone();
        let context = context.filter(|_| self.inner.has_context());
        let (constant, rest) = args.split_first_mut().ok_or("a setter of nothing")?;
        let mut all: Vec<&mut Dynamic> =
            std::iter::once(&mut changed).chain(rest.iter_mut().map(|arg| &mut **arg)).collect();
        self.inner.call(context, &mut all).map(drop)?;
        if same(constant, &changed) {
            return Ok(Dynamic::UNIT);
        }
        Err(Box::new(EvalAltResult::ErrorNonPureMethodCallOnConstant(name.into(), Position::NONE)))
    }

    fn call_inner(&self, context: Option<NativeCallContext>, args: &mut [&mut Dynamic]) -> RhaiResult {
        if let Some(name) = self.sets.filter(|_| args[0].is_read_only()) {
            return self.written_back(name, context, args);
        }
        let options = match (&self.way, &context) {
            (OptionsForm::With(declared), Some(ctx)) => {
                let given = args.last_mut().map(|last| std::mem::take(*last)).unwrap_or_default();
                Some(Options::read(ctx.engine(), declared, given.try_cast::<Map>().unwrap_or_default())?)
            }
            (OptionsForm::Without(declared), Some(ctx)) => {
                Some(Options::read(ctx.engine(), declared, Map::new())?)
            }
            _ => None,
        };
        for &at in &self.whole {
            *args[at] = Dynamic::from(args[at].as_int().unwrap_or_default() as FLOAT);
        }
        let context = context.filter(|_| self.inner.has_context());
        match (options, &self.way) {
            (Some(options), OptionsForm::With(_)) => {
                if let Some(last) = args.last_mut() {
                    **last = Dynamic::from(options);
                }
                self.inner.call(context, args)
            }
            (Some(options), _) => {
                let mut options = Dynamic::from(options);
                let mut all: Vec<&mut Dynamic> =
                    args.iter_mut().map(|arg| &mut **arg).chain([&mut options]).collect();
                self.inner.call(context, &mut all)
            }
            _ => self.inner.call(context, args),
        }
    }
}
