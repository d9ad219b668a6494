//! What scripts hold in their hands: registers and packets by name, arrays of them, values of enums.
//!
//! Names are looked up when a script says them; nothing is decoded before. What each gives follows cffdump of Mesa
//! 25.0: a register or field with one plain reading is a number or boolean, an enum's value an object that converts to
//! its name, anything else an object with fields.

use super::Shared;
use mlua::{AnyUserData, IntoLua, Lua, MetaMethod, UserData, UserDataMethods, Value};
use std::rc::Rc;
use unwedge::base::Generation;
use unwedge::hw::{DecodedValue as Reading, Domain, Gpu, Palette, Reg, RegSpace, ValueType, Variants};
use unwedge_view::listing::COLORS;

/// Dwords with names: the registers, or a packet's payload, as one generation has them.
#[derive(Clone)]
pub struct DwordView {
    shared: Rc<Shared>,
    generation: Generation,
    payload: Option<Payload>,
}

/// A packet's payload, or a descriptor.
#[derive(Clone)]
struct Payload {
    layout: Rc<str>,
    dwords: Rc<[u32]>,
}

impl DwordView {
    /// The registers.
    pub fn registers(shared: Rc<Shared>, generation: Generation) -> DwordView {
        DwordView { shared, generation, payload: None }
    }

    /// Dwords in a layout.
    pub fn payload(shared: Rc<Shared>, generation: Generation, layout: &str, dwords: Vec<u32>) -> DwordView {
        let payload = Payload { layout: layout.into(), dwords: dwords.into() };
        DwordView { shared, generation, payload: Some(payload) }
    }

    /// The database that names them.
    pub fn gpu(&self) -> Gpu<'_> {
        self.shared.db.gpu(self.generation)
    }

    fn layout(&self) -> Option<Domain<'_>> {
        self.gpu().domain(&self.payload.as_ref()?.layout)
    }

    fn dword(&self, index: u32) -> u32 {
        match &self.payload {
            None => self.shared.regs.borrow().raw(index),
            // What cffdump gives behind the end.
            Some(payload) => payload.dwords.get(index as usize).copied().unwrap_or(u32::MAX),
        }
    }

    fn entry(&self, index: u32) -> Option<Reg<'_>> {
        match self.payload {
            None => self.gpu().reg(index),
            Some(_) => self.layout()?.at(index, &Variants::new()),
        }
    }

    fn offset_of(&self, name: &str) -> Option<u32> {
        match self.payload {
            None => self.gpu().reg_offset(name),
            Some(_) => self.layout()?.index_of(name, &Variants::new()),
        }
    }

    /// Registers whose name begins so: at most two of them, which tells none, one and many apart.
    fn two_starting(&self, prefix: &str) -> Vec<u32> {
        fn two<'d>(entries: impl Iterator<Item = Reg<'d>>) -> Vec<u32> {
            let whole = entries.filter(|entry| entry.dword() == 0 && entry.ty().is_some());
            whole.map(Reg::offset).take(2).collect()
        }
        match self.payload {
            None => two(self.gpu().space(RegSpace::Gpu).starting(prefix)),
            Some(_) => self.layout().map(|layout| two(layout.starting(prefix))).unwrap_or_default(),
        }
    }

    /// A whole register, both dwords of a wide one.
    fn whole(&self, offset: u32, entry: Option<Reg<'_>>) -> u64 {
        let low = u64::from(self.dword(offset));
        match entry {
            Some(entry) if entry.width() == 64 => u64::from(self.dword(offset.saturating_add(1))) << 32 | low,
            _ => low,
        }
    }

    fn palette(&self) -> Palette {
        // cffdump colours what scripts look up, whatever the output is.
        if self.payload.is_none() { COLORS } else { self.shared.palette }
    }

    /// What a name stands for: a register, an array, or nothing.
    fn named(&self, lua: &Lua, name: String) -> mlua::Result<Value> {
        if let Some(offset) = self.offset_of(&name) {
            return self.value(lua, offset);
        }
        let array = ["[", "."].iter().any(|end| !self.two_starting(&format!("{name}{end}")).is_empty());
        if array { Block { view: self.clone(), name }.into_lua(lua) } else { Ok(Value::Nil) }
    }

    /// What a register or dword gives.
    fn value(&self, lua: &Lua, offset: u32) -> mlua::Result<Value> {
        let entry = self.entry(offset);
        let plain = match entry.and_then(Reg::ty) {
            Some(ty) if !ty.is_bitset() => self.plain(lua, ty, self.whole(offset, entry), false)?,
            _ => None,
        };
        match plain {
            Some(value) => Ok(value),
            None => ScriptRegister { view: self.clone(), offset }.into_lua(lua),
        }
    }

    /// A value with one plain reading. Of a whole register, numbers with a point and shader registers have none.
    fn plain(&self, lua: &Lua, ty: ValueType<'_>, value: u64, field: bool) -> mlua::Result<Option<Value>> {
        // cffdump gives the bits of signed numbers as they are.
        let bits = Value::Integer(ty.extract(value) as i64);
        Ok(Some(match ty.decode(value, &mut Variants::new()) {
            Reading::Bool(value) => Value::Boolean(value),
            Reading::Hex(_) if ty.name() == "boolean" => Value::Boolean(true),
            Reading::Hex(_) | Reading::Uint(_) | Reading::Int(_) | Reading::Address(_) => bits,
            Reading::Enum(value, name) => {
                let name = self.first_name(ty, value).or(name).map(str::to_owned);
                EnumValue { name, value }.into_lua(lua)?
            }
            Reading::Float(value) if field || ty.name() == "float" => Value::Number(value),
            Reading::RegId(..) if field => bits,
            Reading::Float(_) | Reading::RegId(..) | Reading::Fields(_) => return Ok(None),
        }))
    }

    /// The name that any generation has for an enum's value, the oldest first: scripts are made for cffdump, which gives
    /// them the first name in the file, whichever generation it is for (`FACENESS_FLUSH` for `PC_CCU_FLUSH_DEPTH_TS`).
    fn first_name(&self, ty: ValueType<'_>, value: u64) -> Option<&str> {
        let names = ty.enumeration()?.name();
        let of = |generation| self.shared.db.gpu(generation).enumeration(names)?.name_of(value);
        Generation::ALL.into_iter().find_map(of)
    }

    /// The text of a value as the register at `offset` reads it.
    pub fn text(&self, offset: u32, value: u64) -> Vec<u8> {
        let mut text = Vec::new();
        match self.entry(offset).and_then(Reg::ty) {
            Some(ty) => ty.write(value, &mut Variants::new(), &self.palette(), &mut text),
            None => text.extend_from_slice(format!("{value:08x}").as_bytes()),
        }
        text
    }

    /// The name of a register; its offset when it has none.
    pub fn name(&self, offset: u32) -> Vec<u8> {
        let (mut text, palette) = (Vec::new(), self.palette());
        match self.entry(offset) {
            Some(entry) => entry.write_name(&palette, &mut text),
            None => {
                text.extend_from_slice(format!("{}{offset:#x}{}", palette.error, palette.reset).as_bytes())
            }
        }
        text
    }
}

/// What a script gives for text: a number counts as its digits, what is neither as none.
pub fn text(lua: &Lua, key: Value) -> mlua::Result<String> {
    let text = lua.coerce_string(key)?;
    Ok(text.map(|text| text.to_string_lossy()).unwrap_or_default())
}

/// What a script gives for a number. As in cffdump, what is none counts as 0.
pub fn number(lua: &Lua, value: Value) -> f64 {
    lua.coerce_number(value).ok().flatten().unwrap_or(0.0)
}

/// A number as 32 bits.
pub fn dword(lua: &Lua, value: Value) -> u32 {
    number(lua, value) as i64 as u32
}

impl UserData for DwordView {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, view, key: Value| {
            if view.payload.is_none() {
                return view.named(lua, text(lua, key)?);
            }
            let Some(index) = lua.coerce_integer(key)?.and_then(|index| u32::try_from(index).ok()) else {
                return Ok(Value::Nil);
            };
            let first_of_array = |name: &str| {
                let before = index.checked_sub(1).and_then(|before| view.entry(before));
                name.starts_with("[0]") && before.is_none_or(|entry| !entry.name().starts_with("[0]"))
            };
            match view.entry(index) {
                None => Ok(Value::Nil),
                Some(entry) if first_of_array(entry.name()) => {
                    Block { view: view.clone(), name: String::new() }.into_lua(lua)
                }
                Some(_) => view.value(lua, index),
            }
        });
    }
}

/// An array of registers: `RB_MRT`.
struct Block {
    view: DwordView,
    name: String,
}

impl UserData for Block {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, block, key: Value| {
            let (view, name) = (&block.view, &block.name);
            let index = number(lua, key) as i64;
            let mut instance = if index == 0 { format!("{name}[0]") } else { format!("{name}[{index:#x}]") };
            if let Some(offset) = view.offset_of(&instance) {
                return view.value(lua, offset);
            }
            instance.push('.');
            let mut found = view.two_starting(&instance);
            if found.is_empty() && index == 0 {
                // The names of a single instance have no number.
                instance = format!("{name}.");
                found = view.two_starting(&instance);
            }
            match found.as_slice() {
                [] => Ok(Value::Nil),
                [single] => view.value(lua, *single),
                _ => Instance { view: view.clone(), prefix: instance }.into_lua(lua),
            }
        });
    }
}

/// One of an array's instances, with several registers: `RB_MRT[1]`.
struct Instance {
    view: DwordView,
    prefix: String,
}

impl UserData for Instance {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, instance, key: Value| {
            instance.view.named(lua, format!("{}{}", instance.prefix, text(lua, key)?))
        });
    }
}

/// A register, or a dword of a packet, that is more than a number.
struct ScriptRegister {
    view: DwordView,
    offset: u32,
}

impl ScriptRegister {
    fn whole(&self) -> u64 {
        self.view.whole(self.offset, self.view.entry(self.offset))
    }

    fn field(&self, lua: &Lua, name: &str) -> mlua::Result<Value> {
        let view = &self.view;
        let complaint = match view.entry(self.offset).and_then(Reg::ty).filter(|ty| ty.is_bitset()) {
            Some(ty) => match ty.fields().find(|(field, _)| *field == name) {
                Some((_, field)) => {
                    return Ok(view.plain(lua, field, self.whole(), true)?.unwrap_or(Value::Nil));
                }
                None => format!("invalid member: {name}\n"),
            },
            None => "invalid register type\n".to_owned(),
        };
        view.shared.emit(complaint.as_bytes())?;
        Ok(Value::Nil)
    }
}

impl UserData for ScriptRegister {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, register, key: Value| {
            register.field(lua, &text(lua, key)?)
        });
        methods.add_meta_method(MetaMethod::ToString, |lua, register, ()| {
            lua.create_string(register.view.text(register.offset, register.whole()))
        });
    }
}

/// A value of an enum: its name, or its number when it has none.
struct EnumValue {
    name: Option<String>,
    value: u64,
}

impl EnumValue {
    fn text(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.value.to_string())
    }
}

impl UserData for EnumValue {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, value, ()| Ok(value.text()));
        methods.add_meta_function(MetaMethod::Concat, |lua, (left, right): (Value, Value)| {
            let text = |side: Value| match &side {
                Value::UserData(object) => match object.borrow::<EnumValue>() {
                    Ok(value) => Ok(value.text().into_bytes()),
                    Err(_) => Err(mlua::Error::runtime("attempt to concatenate a userdata value")),
                },
                _ => match lua.coerce_string(side.clone())? {
                    Some(text) => Ok(text.as_bytes().to_vec()),
                    None => {
                        let message = format!("attempt to concatenate a {} value", side.type_name());
                        Err(mlua::Error::runtime(message))
                    }
                },
            };
            lua.create_string([text(left)?, text(right)?].concat())
        });
    }
}

/// The number behind an object.
pub fn number_of(object: &AnyUserData) -> Option<i64> {
    if let Ok(value) = object.borrow::<EnumValue>() {
        return Some(value.value as i64);
    }
    object.borrow::<ScriptRegister>().ok().map(|register| register.whole() as i64)
}
