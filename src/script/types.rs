//! The types that `check` knows: types of literals, of results of native functions, and of results of the script's own
//! functions for the arguments of a call. It reports an error only if every run that gets there must fail. Unknown
//! values can have any type; so can reassigned variables, values that depend on a branch, and everything in `try`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use rhai::{AST, ASTFlags, ASTNode, Engine, Expr, FnCallExpr, Position, Stmt, StmtBlock};

use super::finding::{Finding, with_hint};
use super::kinds::may_be;
use super::lint::namespace_of;
use super::own::body_of;
use super::registry::{self, CallForm, RegisteredFunction};
use super::wrong_types::no_call;
use crate::error::{Error, nearest};

/// A type; none where it is not known.
type Type = Option<KnownValue>;

/// What is known of a value.
#[derive(Debug, Clone)]
struct KnownValue {
    /// Its type as scripts name it.
    name: String,
    /// The signature of the function whose map or Table it is, where that tells all keys or columns.
    made_by: Option<String>,
}

impl KnownValue {
    fn of(name: &str) -> KnownValue {
        KnownValue { name: name.to_string(), made_by: None }
    }
}

impl Deref for KnownValue {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl PartialEq for KnownValue {
    fn eq(&self, other: &KnownValue) -> bool {
        (&self.name, &self.made_by) == (&other.name, &other.made_by)
    }
}

/// Calls of own functions that are followed into one another.
const DEEP: usize = 8;

/// Errors about values of types that a call or a property cannot take. `lost` are names in what could not be read.
pub(super) fn mismatches(engine: &Engine, ast: &AST, lost: &BTreeSet<String>) -> Vec<Finding> {
    let mut script = Script::new(engine, ast, lost);
    // Text that is evaluated may do anything.
    if script.evaluates(ast) {
        return Vec::new();
    }
    let functions: Vec<ScriptFunction> = script.own.values().flatten().cloned().collect();
    script.run(ast.statements(), BTreeMap::new(), true);
    for function in functions {
        script.run(&function.body, BTreeMap::new(), true);
    }
    script.found.into_inner()
}

/// One of the script's functions.
#[derive(Clone)]
struct ScriptFunction {
    parameters: Vec<String>,
    body: Vec<Stmt>,
}

/// The variables of known types, innermost block last.
type Scopes = Vec<BTreeMap<String, Type>>;

struct Script<'a> {
    engine: &'a Engine,
    entries: Vec<RegisteredFunction>,
    /// Types that have properties of any name: maps, and what is indexed by texts.
    open: BTreeSet<String>,
    own: BTreeMap<String, Vec<ScriptFunction>>,
    /// Variables that are given values after their definition, or may be.
    assigned: BTreeSet<String>,
    /// Variables whose keys are set after their definition, or may be.
    filled: BTreeSet<String>,
    lost: &'a BTreeSet<String>,
    found: RefCell<Vec<Finding>>,
    /// What calls of own functions came to: the type of the result, and the mistake that every such call makes.
    known: RefCell<BTreeMap<String, (Type, Option<String>)>>,
    depth: Cell<usize>,
}

/// One pass through statements.
struct TypePass {
    scopes: Scopes,
    /// Whether mistakes are looked for, and not just types.
    loud: bool,
    /// Whether branches are looked at, too: they may never be run.
    branches: bool,
    /// The types of all values that are returned before the end.
    returned: Vec<Type>,
    /// Whether the end is reached by no run.
    ended: bool,
    found: Vec<Finding>,
}

impl<'a> Script<'a> {
    fn new(engine: &'a Engine, ast: &AST, lost: &'a BTreeSet<String>) -> Script<'a> {
        let entries = registry::entries(engine, true);
        let indexed = engine.collect_fn_metadata(
            None,
            |info| {
                let meta = info.metadata;
                let first = meta.params_info.first().filter(|_| meta.name == "index$get$")?;
                Some(registry::type_name(engine, first.split_once(':').map_or("", |(_, kind)| kind)))
            },
            true,
        );
        let mut open: BTreeSet<String> = indexed.into_iter().collect();
        open.insert("map".into());
        let mut own: BTreeMap<String, Vec<ScriptFunction>> = BTreeMap::new();
        for (.., function) in ast.shared_lib().iter_script_fn_info() {
            let parameters = function.params.iter().map(|p| p.to_string()).collect();
            let body = body_of(function);
            own.entry(function.name.to_string()).or_default().push(ScriptFunction { parameters, body });
        }
        let (mut assigned, mut filled) = (BTreeSet::new(), BTreeSet::new());
        ast.walk(&mut |path: &[ASTNode]| {
            match path.last() {
                Some(ASTNode::Stmt(Stmt::Assignment(parts))) => {
                    assigned.extend(plain_name(&parts.1.lhs));
                    filled.extend(root(&parts.1.lhs));
                }
                Some(ASTNode::Expr(Expr::Dot(pair, ..))) => {
                    let first = if let Expr::Dot(rest, ..) = &pair.rhs { &rest.lhs } else { &pair.rhs };
                    if let Expr::MethodCall(call, _) = first {
                        filled.extend(root(&pair.lhs));
                        // An own function may give its `this` another value.
                        if call.name == "call" || own.contains_key(call.name.as_str()) {
                            assigned.extend(plain_name(&pair.lhs));
                        }
                    }
                }
                _ => {}
            }
            true
        });
        Script {
            engine,
            entries,
            open,
            own,
            assigned,
            filled,
            lost,
            found: RefCell::default(),
            known: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    fn evaluates(&self, ast: &AST) -> bool {
        let mut found = false;
        ast.walk(&mut |path: &[ASTNode]| {
            if let Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _))) =
                path.last()
            {
                found |= call.name == "eval";
            }
            !found
        });
        found
    }

    /// Looks through the statements of the script or of one of its functions, of whose parameters nothing is known.
    fn run(&mut self, statements: &[Stmt], variables: BTreeMap<String, Type>, branches: bool) {
        let mut pass = TypePass::new(vec![variables], true, branches);
        self.statements(&mut pass, statements);
        let mut found = self.found.borrow_mut();
        for finding in pass.found {
            if !found.iter().any(|other| other.position == finding.position) {
                found.push(finding);
            }
        }
    }

    /// The statements in order; the type of the last one.
    fn statements(&self, pass: &mut TypePass, list: &[Stmt]) -> Type {
        let mut last = None;
        for statement in list {
            last = self.statement(pass, statement);
            // What follows may not be reached.
            if pass.ended || !matches!(statement, Stmt::Return(..)) && leaves(statement) {
                pass.loud = false;
            }
        }
        last
    }

    fn block(&self, pass: &mut TypePass, block: &StmtBlock) -> Type {
        pass.scopes.push(BTreeMap::new());
        let last = self.statements(pass, block.statements());
        pass.scopes.pop();
        last
    }

    /// A block that perhaps is not run.
    fn branch(&self, pass: &mut TypePass, block: &StmtBlock, looked_at: bool) -> Type {
        let (loud, ended) = (pass.loud, pass.ended);
        pass.loud = loud && looked_at;
        let last = self.block(pass, block);
        (pass.loud, pass.ended) = (loud, ended);
        last
    }

    /// An expression that perhaps is not evaluated.
    fn branch_of(&self, pass: &mut TypePass, x: &Expr, looked_at: bool) {
        let loud = pass.loud;
        pass.loud = loud && looked_at;
        self.expression(pass, x);
        pass.loud = loud;
    }

    fn statement(&self, pass: &mut TypePass, statement: &Stmt) -> Type {
        match statement {
            Stmt::Var(parts, ..) => {
                let of = self.expression(pass, &parts.1);
                let name = parts.0.name.to_string();
                pass.define(&name, self.kept(&name, of));
                None
            }
            Stmt::Assignment(parts) => {
                self.expression(pass, &parts.1.rhs);
                None
            }
            Stmt::FnCall(call, position) => self.call(pass, call, *position),
            Stmt::Expr(inner) => self.expression(pass, inner),
            Stmt::Block(inner) => self.block(pass, inner),
            Stmt::If(flow, _) => {
                self.expression(pass, &flow.expr);
                let looked_at = pass.branches && !asks_for_types(&flow.expr);
                let one = self.branch(pass, &flow.body, looked_at);
                let other = self.branch(pass, &flow.branch, looked_at);
                one.filter(|_| !flow.branch.is_empty()).filter(|one| other.as_ref() == Some(one))
            }
            Stmt::While(flow, _) | Stmt::Do(flow, ..) => {
                let looked_at = pass.branches;
                self.branch_of(pass, &flow.expr, looked_at);
                self.branch(pass, &flow.body, looked_at);
                None
            }
            Stmt::For(parts, _) => {
                self.expression(pass, &parts.2.expr);
                pass.scopes.push(BTreeMap::new());
                pass.define(&parts.0.name, None);
                if let Some(counter) = &parts.1 {
                    pass.define(&counter.name, None);
                }
                let looked_at = pass.branches;
                self.branch(pass, &parts.2.body, looked_at);
                pass.scopes.pop();
                None
            }
            Stmt::Return(value, flags, _) => {
                let of = value.as_ref().and_then(|value| self.expression(pass, value));
                // A `throw` gives no value.
                if !flags.intersects(ASTFlags::BREAK) {
                    pass.returned.push(of);
                }
                pass.ended = true;
                None
            }
            Stmt::Switch(parts, _) => {
                self.expression(pass, &parts.0);
                self.returns_of(pass, statement);
                None
            }
            Stmt::TryCatch(..) => {
                self.returns_of(pass, statement);
                None
            }
            Stmt::BreakLoop(..) => {
                pass.ended = true;
                None
            }
            _ => None,
        }
    }

    /// Of values that are returned from within nothing is known.
    fn returns_of(&self, pass: &mut TypePass, statement: &Stmt) {
        if leaves(statement) {
            pass.returned.push(None);
        }
    }

    fn expression(&self, pass: &mut TypePass, x: &Expr) -> Type {
        let named = |name: &str| Some(KnownValue::of(name));
        match x {
            Expr::BoolConstant(..) => named("bool"),
            Expr::IntegerConstant(..) => named("int"),
            Expr::FloatConstant(..) => named("float"),
            Expr::CharConstant(..) => named("char"),
            Expr::StringConstant(..) => named("string"),
            Expr::InterpolatedString(parts, _) => {
                parts.iter().for_each(|part| drop(self.expression(pass, part)));
                named("string")
            }
            Expr::Array(parts, _) => {
                parts.iter().for_each(|part| drop(self.expression(pass, part)));
                named("array")
            }
            Expr::Map(parts, _) => {
                parts.0.iter().for_each(|(_, value)| drop(self.expression(pass, value)));
                named("map")
            }
            Expr::DynamicConstant(value, _) => {
                let of = registry::type_name(self.engine, value.type_name());
                ["array", "map", "function", "range"].contains(&of.as_str()).then(|| KnownValue::of(&of))
            }
            Expr::Variable(variable, ..) if variable.2.is_empty() => pass.of(&variable.1),
            Expr::Stmt(inner) => self.block(pass, inner),
            Expr::FnCall(call, position) => self.call(pass, call, *position),
            Expr::Dot(pair, flags, _) => {
                let of = self.expression(pass, &pair.lhs);
                // `a?.b` asks nothing of what is not there.
                self.chain(pass, of.filter(|_| !flags.intersects(ASTFlags::NEGATED)), &pair.rhs)
            }
            Expr::Index(pair, flags, _) => {
                self.expression(pass, &pair.lhs);
                self.index(pass, &pair.rhs, *flags);
                None
            }
            Expr::And(parts, _) | Expr::Or(parts, _) | Expr::Coalesce(parts, _) => {
                let mut parts_ = parts.iter();
                if let Some(first) = parts_.next() {
                    self.expression(pass, first);
                }
                let loud = std::mem::replace(&mut pass.loud, false);
                parts_.for_each(|part| drop(self.expression(pass, part)));
                pass.loud = loud;
                if matches!(x, Expr::Coalesce(..)) { None } else { named("bool") }
            }
            _ => None,
        }
    }

    /// What follows a value of a type behind a point.
    fn chain(&self, pass: &mut TypePass, of: Type, x: &Expr) -> Type {
        match x {
            Expr::Property(parts, position) => self.property(pass, &of?, &parts.2, *position),
            Expr::MethodCall(call, position) => self.method(pass, of, call, *position),
            Expr::Dot(pair, flags, _) => {
                let of = self.chain(pass, of, &pair.lhs);
                self.chain(pass, of.filter(|_| !flags.intersects(ASTFlags::NEGATED)), &pair.rhs)
            }
            Expr::Index(pair, flags, _) => {
                self.chain(pass, of, &pair.lhs);
                self.index(pass, &pair.rhs, *flags);
                None
            }
            _ => None,
        }
    }

    /// What stands between brackets. Where the chain goes on behind them, the tree holds its rest with the index:
    /// `a[i].b` is `a` at (`i`, then `b`).
    fn index(&self, pass: &mut TypePass, x: &Expr, flags: ASTFlags) {
        match x {
            Expr::Dot(pair, ..) if !flags.intersects(ASTFlags::BREAK) => {
                self.expression(pass, &pair.lhs);
                self.chain(pass, None, &pair.rhs);
            }
            Expr::Index(pair, inner, _) if !flags.intersects(ASTFlags::BREAK) => {
                self.expression(pass, &pair.lhs);
                self.index(pass, &pair.rhs, *inner);
            }
            x => drop(self.expression(pass, x)),
        }
    }

    /// What a variable of this name keeps of what is known of its first value.
    fn kept(&self, name: &str, of: Type) -> Type {
        let of = of.filter(|_| !self.assigned.contains(name))?;
        Some(KnownValue { made_by: of.made_by.filter(|_| !self.filled.contains(name)), ..of })
    }

    fn property(&self, pass: &mut TypePass, of: &KnownValue, name: &str, position: Position) -> Type {
        let ways: Vec<&RegisteredFunction> =
            self.entries.iter().filter(|e| e.form == CallForm::Property && e.name == name).collect();
        let fits = |e: &&RegisteredFunction| e.of_type().is_some_and(|kind| may_take(kind, of));
        let maker = of.made_by.as_ref();
        let maker = maker.and_then(|signature| self.entries.iter().find(|e| e.signature() == *signature));
        if let Some(maker) = maker {
            if let Some(field) = maker.fields.iter().find(|field| field.name == name) {
                return (!field.kind.is_empty()).then(|| KnownValue::of(&field.kind));
            }
            if !ways.iter().any(fits) {
                let error =
                    Error::input(format!("the {of} of `{}` has no `{name}`", maker.path(), of = of.name));
                let names = || maker.fields.iter().map(|field| field.name.as_str());
                let hint = match nearest(name, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
                };
                pass.say(error.hint(hint), position);
                return None;
            }
        }
        if self.open.contains(&of.name) {
            return None;
        }
        if !ways.iter().any(fits) {
            let error = Error::input(format!("{} has no property `{name}`", of.name));
            let others: Vec<&str> =
                ways.iter().filter_map(|e| e.of_type()).filter(|k| !k.is_empty()).collect();
            let hint = if others.is_empty() || others.len() > 4 {
                registry::no_property(self.engine, name, of)
            } else {
                let one = if others.len() == 1 { "has" } else { "have" };
                Some(format!("{} {one} one", others.join(", ")))
            };
            pass.say(with_hint(error, hint), position);
            return None;
        }
        same(ways.into_iter().filter(fits))
    }

    fn method(&self, pass: &mut TypePass, of: Type, call: &FnCallExpr, position: Position) -> Type {
        let mut types = vec![of];
        types.extend(call.args.iter().map(|x| self.expression(pass, x)));
        let name = call.name.as_str();
        // A map may hold a function of that name, and own functions take `this`.
        if types[0].as_deref() == Some("map") || self.own.contains_key(name) || self.lost.contains(name) {
            return None;
        }
        self.native(pass, name, &types, position)
    }

    fn call(&self, pass: &mut TypePass, call: &FnCallExpr, position: Position) -> Type {
        let types: Vec<Type> = call.args.iter().map(|x| self.expression(pass, x)).collect();
        let name = call.name.as_str();
        if call.op_token.is_some() {
            return operator(name, &types);
        }
        let modules = namespace_of(call);
        if call.capture_parent_scope {
            return None;
        }
        if modules.is_empty() {
            let own =
                self.own.get(name).and_then(|forms| forms.iter().find(|f| f.parameters.len() == types.len()));
            if let Some(function) = own {
                return self.own_call(pass, name, function, &types, position);
            }
            if self.own.contains_key(name) || self.lost.contains(name) || pass.knows(name) {
                return None;
            }
        }
        let path = modules.into_iter().chain([name.to_string()]).collect::<Vec<_>>().join("::");
        self.native(pass, &path, &types, position)
    }

    /// A call of functions of this program.
    fn native(&self, pass: &mut TypePass, path: &str, types: &[Type], position: Position) -> Type {
        let ways: Vec<&RegisteredFunction> = self
            .entries
            .iter()
            .filter(|e| e.form != CallForm::Property && e.path() == path && e.parameters.len() == types.len())
            .collect();
        let takes = |e: &&RegisteredFunction| {
            e.parameters.iter().zip(types).all(|(p, of)| of.as_deref().is_none_or(|of| may_take(&p.kind, of)))
        };
        let fitting: Vec<&RegisteredFunction> = ways.iter().copied().filter(takes).collect();
        if fitting.is_empty() && !ways.is_empty() {
            let given: Vec<&str> = types.iter().map(|of| of.as_deref().unwrap_or("..")).collect();
            let error = Error::input(format!("no function `{path}({})`", given.join(", ")));
            let hint =
                no_call(self.engine, path, &given).or_else(|| registry::did_you_mean(self.engine, path));
            pass.say(with_hint(error, hint), position);
            return None;
        }
        same(fitting.into_iter())
    }

    /// A call of an own function: its statements with arguments of these types.
    fn own_call(
        &self,
        pass: &mut TypePass,
        name: &str,
        own: &ScriptFunction,
        types: &[Type],
        at: Position,
    ) -> Type {
        let key = format!("{name} {types:?}");
        let known = self.known.borrow().get(&key).cloned();
        let (of, mistake) = known.unwrap_or_else(|| {
            if self.depth.get() >= DEEP {
                return (None, None);
            }
            // A function that calls itself ends by what it does without that.
            self.known.borrow_mut().insert(key.clone(), (None, None));
            self.depth.set(self.depth.get() + 1);
            let given = own.parameters.iter().zip(types);
            let variables = given.map(|(name, of)| (name.clone(), self.kept(name, of.clone()))).collect();
            let mut inner = TypePass::new(vec![variables], true, false);
            let last = self.statements(&mut inner, &own.body);
            self.depth.set(self.depth.get() - 1);
            let mut ends = inner.returned;
            if !inner.ended {
                ends.push(last);
            }
            let first = ends.first().cloned().flatten();
            let of = first.filter(|first| ends.iter().all(|end| end.as_ref() == Some(first)));
            let mistake = inner.found.into_iter().next().map(|finding| {
                let line = finding.position.line().map_or(String::new(), |line| format!(" (line {line})"));
                format!("{}{line}", finding.error.message())
            });
            self.known.borrow_mut().insert(key.clone(), (of.clone(), mistake.clone()));
            (of, mistake)
        });
        // A mistake that the function makes whatever it is given is found there.
        if let Some(mistake) = mistake.filter(|_| types.iter().any(Option::is_some)) {
            let given: Vec<&str> = types.iter().map(|of| of.as_deref().unwrap_or("..")).collect();
            let error = Error::input(format!("`{name}` cannot take ({}): {mistake}", given.join(", ")));
            pass.say(error.hint(format!("the script defines `{name}({})`", own.parameters.join(", "))), at);
        }
        of
    }
}

impl TypePass {
    fn new(scopes: Scopes, loud: bool, branches: bool) -> TypePass {
        TypePass { scopes, loud, branches, returned: Vec::new(), ended: false, found: Vec::new() }
    }

    fn define(&mut self, name: &str, of: Type) {
        if let Some(inner) = self.scopes.last_mut() {
            inner.insert(name.to_string(), of);
        }
    }

    fn of(&self, name: &str) -> Type {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned().flatten()
    }

    fn knows(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains_key(name))
    }

    fn say(&mut self, error: Error, position: Position) {
        if self.loud {
            self.found.push(Finding { position, error });
        }
    }
}

/// Whether a parameter of this kind may take a value of that type. Numbers are not told apart: what is computed may be
/// of either kind.
fn may_take(kind: &str, of: &str) -> bool {
    may_be(kind, of) || of == "float" && may_be(kind, "int") || kind == "Options" && of == "map"
}

/// The type that all give; none where one gives none or another.
fn same<'a>(mut ways: impl Iterator<Item = &'a RegisteredFunction>) -> Type {
    let first = ways.next().filter(|way| !way.returns.is_empty() && !way.returns.contains(" or "))?;
    let known = !first.fields.is_empty() && !first.more_fields;
    let mut made_by = known.then(|| first.signature());
    for way in ways {
        if way.returns != first.returns {
            return None;
        }
        made_by = made_by.filter(|signature| way.signature() == *signature);
    }
    Some(KnownValue { name: first.returns.clone(), made_by })
}

/// The variable that an expression is, if it is one.
fn plain_name(x: &Expr) -> Option<String> {
    if let Expr::Variable(variable, ..) = x { Some(variable.1.to_string()) } else { None }
}

/// The variable that a chain of properties and indices begins with.
fn root(x: &Expr) -> Option<String> {
    match x {
        Expr::Dot(pair, ..) | Expr::Index(pair, ..) => root(&pair.lhs),
        x => plain_name(x),
    }
}

/// The type of what an operator gives, of numbers.
fn operator(name: &str, types: &[Type]) -> Type {
    let known: Option<Vec<&str>> = types.iter().map(Option::as_deref).collect();
    let known = known?;
    let numbers = known.iter().all(|of| matches!(*of, "int" | "float"));
    match name {
        "+" | "-" | "*" | "/" if numbers => {
            let of = if known.contains(&"float") { "float" } else { "int" };
            Some(KnownValue::of(of))
        }
        "+" if known == ["string", "string"] => Some(KnownValue::of("string")),
        "!" if known == ["bool"] => Some(KnownValue::of("bool")),
        _ => None,
    }
}

/// Whether a statement may leave the function or the loop that it stands in.
fn leaves(statement: &Stmt) -> bool {
    let own_loop = matches!(statement, Stmt::For(..) | Stmt::While(..) | Stmt::Do(..));
    let mut found = false;
    statement.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
        found |= match path.last() {
            Some(ASTNode::Stmt(Stmt::Return(..))) => true,
            Some(ASTNode::Stmt(Stmt::BreakLoop(..))) => !own_loop,
            _ => false,
        };
        !found
    });
    found
}

/// Whether a condition looks at the type of something.
fn asks_for_types(condition: &Expr) -> bool {
    let mut found = false;
    condition.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
        if let Some(ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _))) = path.last() {
            found |= matches!(call.name.as_str(), "type_of" | "is_def_var" | "is_def_fn" | "is_shared");
        }
        !found
    });
    found
}

#[cfg(test)]
mod tests;
