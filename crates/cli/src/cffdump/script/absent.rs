//! Scripts where there is no Lua: there are none.

use super::Ended;
use crate::output::SharedOutput;
use crate::text::Watch;
use std::rc::Rc;
use unwedge_base::{Dwords, Generation, Memory};
use unwedge_hw::{Db, Domain, Palette};

/// A script. There is none.
pub enum Script {}

impl Script {
    /// Always fails.
    pub fn load(
        name: &str,
        _source: &[u8],
        _db: Rc<Db>,
        _palette: Palette,
        _out: SharedOutput,
    ) -> Result<Script, Ended> {
        Err(Ended::Failed(format!("{name}: this unwedge was built without Lua")))
    }

    pub fn start_cmdstream(&self, _name: &str) {
        match *self {}
    }

    pub fn identified(&self, _generation: Generation) {
        match *self {}
    }

    pub fn reset(&self) {
        match *self {}
    }

    pub fn start_submit(&self, _memory: &Memory) {
        match *self {}
    }

    pub fn end_submit(&self) {
        match *self {}
    }

    pub fn end_cmdstream(&self) {
        match *self {}
    }

    pub fn finish(self) -> Result<(), Ended> {
        match self {}
    }
}

impl Watch for Script {
    fn layout(&self, _layout: Domain<'_>, _dwords: Dwords<'_>) {
        match *self {}
    }

    fn draw(&self, _what: Option<&str>, _indices: u32) {
        match *self {}
    }

    fn write(&self, _reg: u32, _value: u32) {
        match *self {}
    }

    fn drawn(&self) {
        match *self {}
    }

    fn forget(&self) {
        match *self {}
    }

    fn over(&self) -> bool {
        match *self {}
    }
}
