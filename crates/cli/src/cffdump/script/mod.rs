//! Lua scripts that look on while a capture is walked (`-L`).
//!
//! A script is told of captures, submits, packets, descriptors and draws by functions of its own, and reads registers
//! and buffers as they are at that moment. Never: walking, decoding. The interface is that of cffdump of Mesa 25.0, so
//! that its scripts run unchanged.

mod objects;

use super::Ended;
use crate::output::SharedOutput;
use mlua::chunk::ChunkMode;
use mlua::{AnyUserData, IntoLua, IntoLuaMulti, Lua, LuaString, Table, Value};
use objects::DwordView;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use unwedge::base::{Buffer, Dwords, Generation, Memory};
use unwedge::hw::{Db, Domain, Palette};
use unwedge::stream::adreno::Registers;
use unwedge_view::cffdump;
use unwedge_view::listing::Watch;

/// What a script sees.
struct Shared {
    db: Rc<Db>,
    palette: Palette,
    /// The registers as they are at this point of the walk.
    regs: RefCell<Registers>,
    /// The buffers of the submit, without their contents.
    buffers: RefCell<Memory>,
    out: SharedOutput,
    ended: RefCell<Option<Ended>>,
}

impl Shared {
    fn emit(&self, text: &[u8]) -> mlua::Result<()> {
        self.taken(self.out.borrow_mut().write_all(text))
    }

    fn taken(&self, written: std::io::Result<()>) -> mlua::Result<()> {
        written.map_err(|e| {
            self.end(Ended::Output);
            mlua::Error::external(e)
        })
    }

    /// The first reason counts.
    fn end(&self, why: Ended) {
        self.ended.borrow_mut().get_or_insert(why);
    }
}

/// A script that has been loaded.
pub struct Script {
    lua: Lua,
    shared: Rc<Shared>,
    generation: Cell<Generation>,
    /// Bytes given to the script since garbage was collected.
    handed: Cell<usize>,
}

/// What a packet costs beside its dwords, in bytes.
const OVERHEAD: usize = 256;
/// So many bytes may be held by garbage that Lua does not see; more where a script itself holds more.
const UNSEEN: usize = 2 << 20;

impl Script {
    /// Runs a script's own code, which leaves its functions behind. `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// [`Ended`] if the script does not compile, fails while its own code runs, or the output cannot be
    /// written.
    pub fn load(
        name: &str,
        source: &[u8],
        db: Rc<Db>,
        palette: Palette,
        out: SharedOutput,
    ) -> Result<Script, Ended> {
        let shared = Rc::new(Shared {
            db,
            palette,
            regs: RefCell::default(),
            buffers: RefCell::default(),
            out,
            ended: RefCell::default(),
        });
        let script =
            Script { lua: Lua::new(), shared, generation: Cell::new(Generation::A6xx), handed: Cell::new(0) };
        let prepared = library(&script.lua, &script.shared);
        script.outcome("unwedge", prepared);
        let chunk = script.lua.load(code(source)).set_name(format!("@{name}")).set_mode(ChunkMode::Text);
        if !script.over() {
            script.outcome("", chunk.exec());
        }
        script.ended().map_or(Ok(script), Err)
    }

    /// Counts dwords given to the script, which Lua does not see: they are garbage that makes it collect none.
    fn hand_out(&self, dwords: usize) {
        let handed = self.handed.get().saturating_add(4 * dwords).saturating_add(OVERHEAD);
        if handed < UNSEEN.max(self.lua.used_memory()) {
            return self.handed.set(handed);
        }
        self.handed.set(0);
        self.outcome("unwedge", self.lua.gc_collect());
    }

    fn ended(&self) -> Option<Ended> {
        self.shared.ended.borrow().clone()
    }

    /// There are no more captures.
    ///
    /// # Errors
    ///
    /// [`Ended`] with the first error that ended the script, in this or an earlier call.
    pub fn finish(self) -> Result<(), Ended> {
        self.hook("finish", ());
        let Script { lua, shared, .. } = self;
        // Finalizers still write.
        drop(lua);
        let ended = shared.ended.borrow().clone();
        ended.map_or(Ok(()), Err)
    }

    /// Calls a function of the script's, if it has one of that name.
    fn hook(&self, name: &str, arguments: impl IntoLuaMulti) {
        if self.over() {
            return;
        }
        if let Ok(Value::Function(function)) = self.lua.globals().get(name) {
            self.outcome(name, function.call::<()>(arguments));
        }
    }

    fn outcome(&self, place: &str, result: mlua::Result<()>) {
        if let Err(error) = result {
            let message = message(&error);
            let place = if place.is_empty() { String::new() } else { format!("in {place}: ") };
            self.shared.end(Ended::Failed(format!("{place}{message}")));
        }
    }
}

impl cffdump::Script for Script {
    fn start_cmdstream(&self, name: &str) {
        self.hook("start_cmdstream", name);
    }

    fn identified(&self, generation: Generation) {
        if self.generation.replace(generation) != generation {
            *self.shared.regs.borrow_mut() = Registers::default();
        }
    }

    fn reset(&self) {
        self.shared.regs.borrow_mut().reset();
    }

    fn start_submit(&self, memory: &Memory) {
        let bare = |b: &Buffer| Buffer { iova: b.iova, size: b.size, contents: None, name: String::new() };
        *self.shared.buffers.borrow_mut() = memory.buffers().iter().map(bare).collect();
        self.hook("start_submit", ());
    }

    fn end_submit(&self) {
        self.hook("end_submit", ());
    }

    fn end_cmdstream(&self) {
        self.hook("end_cmdstream", ());
        *self.shared.buffers.borrow_mut() = Memory::default();
    }
}

impl Watch for Script {
    fn layout(&self, layout: Domain<'_>, dwords: Dwords<'_>) {
        if self.over() {
            return;
        }
        if let Ok(Value::Function(function)) = self.lua.globals().get(layout.name()) {
            let shared = Rc::clone(&self.shared);
            let dwords: Vec<u32> = dwords.iter().collect();
            self.hand_out(dwords.len());
            let size = dwords.len() as f64;
            let packet = DwordView::payload(shared, self.generation.get(), layout.name(), dwords);
            self.outcome(layout.name(), function.call::<()>((packet, size)));
        }
    }

    fn draw(&self, what: Option<&str>, indices: u32) {
        self.hook("draw", (what, f64::from(indices)));
    }

    fn write(&self, reg: u32, value: u32) {
        self.shared.regs.borrow_mut().set(reg, value);
    }

    fn drawn(&self) {
        self.shared.regs.borrow_mut().mark_draw();
    }

    fn forget(&self) {
        self.shared.regs.borrow_mut().forget_rewritten();
    }

    fn over(&self) -> bool {
        self.shared.ended.borrow().is_some()
    }
}

/// A script's text, without what Lua's loader of files leaves out: a mark of UTF-8, a first line for the shell.
fn code(source: &[u8]) -> &[u8] {
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source);
    match source.first() {
        // The line's end stays, for the numbers of the lines.
        Some(b'#') => {
            let end = source.iter().position(|&c| c == b'\n').unwrap_or(source.len());
            source.get(end..).unwrap_or_default()
        }
        _ => source,
    }
}

/// What Lua says is wrong: file, line and mistake.
fn message(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::CallbackError { cause, .. } => return message(cause),
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => text.clone(),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().trim_end().to_owned()
}

/// The generation that a name of a GPU begins with: `a630`, `a6xx`.
fn generation(name: &str) -> Option<Generation> {
    Generation::ALL.into_iter().find(|g| name.contains(&format!("a{}", g.number())))
}

/// Gives a script its library: `rnn`, `regs`, `bos`, and output in order with the listing.
fn library(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<()> {
    let globals = lua.globals();
    globals.set("rnn", rnn(lua, shared)?)?;

    let regs = lua.create_table()?;
    let read = |read: fn(&Registers, u32) -> u32| {
        let shared = Rc::clone(shared);
        lua.create_function(move |lua, reg: Value| {
            Ok(f64::from(read(&shared.regs.borrow(), objects::dword(lua, reg))))
        })
    };
    regs.set("written", read(|regs, reg| regs.get(reg).is_some().into())?)?;
    regs.set("lastval", read(Registers::previous)?)?;
    regs.set("val", read(Registers::raw)?)?;
    globals.set("regs", regs)?;

    let bos = lua.create_table()?;
    let look_up = |tell: fn(&Buffer, u64) -> u64| {
        let shared = Rc::clone(shared);
        lua.create_function(move |lua, iova: Value| {
            let iova = objects::number(lua, iova) as u64;
            let buffers = shared.buffers.borrow();
            Ok(buffers.find(iova).filter(|_| iova != 0).map_or(0, |buffer| tell(buffer, iova)) as f64)
        })
    };
    bos.set("base", look_up(|buffer, _| buffer.iova)?)?;
    bos.set("size", look_up(|buffer, iova| buffer.end().saturating_sub(iova))?)?;
    globals.set("bos", bos)?;

    let debug = lua.create_table()?;
    debug.set(
        "traceback",
        lua.create_function(|lua, message: Option<String>| lua.traceback(message.as_deref(), 1))?,
    )?;
    globals.set("debug", debug)?;

    let to = Rc::clone(shared);
    let emit = lua.create_function(move |_, text: LuaString| to.emit(&text.as_bytes()))?;
    let to = Rc::clone(shared);
    let flush = lua.create_function(move |_, ()| to.taken(to.out.borrow_mut().flush()))?;
    let to = Rc::clone(shared);
    let leave = lua.create_function(move |lua, status: Value| -> mlua::Result<()> {
        to.end(Ended::Exit(objects::number(lua, status) as i64 as u8));
        Err(mlua::Error::runtime("os.exit"))
    })?;
    let number_of = lua.create_function(|_, object: AnyUserData| Ok(objects::number_of(&object)))?;
    let path = |part: fn(&std::path::Path) -> Option<&std::ffi::OsStr>| {
        lua.create_function(move |_, path: String| {
            let part = part(std::path::Path::new(&path)).filter(|part| !part.is_empty());
            Ok(part.map_or(".".to_owned(), |part| part.to_string_lossy().into_owned()))
        })
    };
    let dirname = path(|path| path.parent().map(std::path::Path::as_os_str))?;
    let basename = path(std::path::Path::file_name)?;
    let prelude = lua.load(include_str!("prelude.lua")).set_name("=unwedge");
    prelude.call::<()>((emit, flush, leave, number_of, dirname, basename))
}

/// The register database, for scripts.
fn rnn(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let rnn = lua.create_table()?;
    let shared = Rc::clone(shared);
    let init = lua.create_function(move |lua, name: Value| {
        let name = objects::text(lua, name)?;
        match generation(&name) {
            Some(generation) => Ok(DwordView::registers(Rc::clone(&shared), generation)),
            None => Err(complaint(lua, &format!("no register database for '{name}'"))),
        }
    })?;
    rnn.set("init", init)?;
    let with_view = |answer: fn(&Lua, &DwordView, [Value; 2]) -> mlua::Result<Value>| {
        lua.create_function(move |lua, (object, first, second): (Value, Value, Value)| {
            let object = object.as_userdata().and_then(|object| object.borrow::<DwordView>().ok());
            let Some(view) = object else {
                return Err(complaint(lua, "bad argument #1 (what rnn.init gives expected)"));
            };
            answer(lua, &view, [first, second])
        })
    };
    let enumname = with_view(|lua, view, [name, value]| {
        let (name, value) = (objects::text(lua, name)?, objects::dword(lua, value));
        let found = view.gpu().enumeration(&name).and_then(|names| names.name_of(value.into()));
        found.into_lua(lua)
    })?;
    rnn.set("enumname", enumname)?;
    let regname = with_view(|lua, view, [reg, _]| {
        Ok(Value::String(lua.create_string(view.name(objects::dword(lua, reg)))?))
    })?;
    rnn.set("regname", regname)?;
    let regval = with_view(|lua, view, arguments| {
        let [reg, value] = arguments.map(|argument| objects::dword(lua, argument));
        Ok(Value::String(lua.create_string(view.text(reg, value.into()))?))
    })?;
    rnn.set("regval", regval)?;
    Ok(rnn)
}

/// A mistake of the code that calls us.
fn complaint(lua: &Lua, what: &str) -> mlua::Error {
    let place = lua.inspect_stack(1, |caller| {
        let file = caller.source().short_src.map(|file| file.into_owned())?;
        Some(format!("{file}:{}: ", caller.current_line()?))
    });
    mlua::Error::runtime(format!("{}{what}", place.flatten().unwrap_or_default()))
}
