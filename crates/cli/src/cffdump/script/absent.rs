//! Scripts where there is no Lua: there are none.

use super::Ended;
use crate::output::SharedOutput;
use std::rc::Rc;
use unwedge::base::{Dwords, Generation, Memory};
use unwedge::hw::{Db, Domain, Palette};
use unwedge_view::cffdump;
use unwedge_view::listing::Watch;

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

    /// Nothing can have been written.
    pub fn finish(self) -> Result<(), Ended> {
        match self {}
    }
}

impl cffdump::Script for Script {
    fn start_cmdstream(&self, _name: &str) {
        match *self {}
    }

    fn identified(&self, _generation: Generation) {
        match *self {}
    }

    fn reset(&self) {
        match *self {}
    }

    fn start_submit(&self, _memory: &Memory) {
        match *self {}
    }

    fn end_submit(&self) {
        match *self {}
    }

    fn end_cmdstream(&self) {
        match *self {}
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
