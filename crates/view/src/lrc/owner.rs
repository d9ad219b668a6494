//! Whose context is meant: as options spell it, completed by what a dump says.

use super::contexts::Context;
use crate::regs::chip::intel_platform;
use thiserror::Error;
use unwedge_hw::intel::platform::{Engine, IntelDriver, Platform, Version};
use unwedge_intel::lrc::{LrcLayout, LrcLayoutError, LrcOwner};

/// The first graphics that has context images.
const FIRST: Version = Version::new(8, 0);

/// Why the owner of a context, or its layout, is not known.
#[derive(Debug, Error)]
pub enum OwnerError {
    /// Not a platform with context images.
    #[error(
        "--platform {name}: expected one of {}, the PCI id of one of their chips (0x9a49), or a graphics version from 8.00 on \
         (12.70)",
        known_platforms()
    )]
    UnknownPlatform {
        /// The name.
        name: String,
    },
    /// An engine without a platform.
    #[error("--platform is missing: tgl, 0x9a49, 12.70")]
    NoPlatform,
    /// A platform without an engine.
    #[error("--engine is missing: one of {}", engines(*version))]
    NoEngine {
        /// The graphics.
        version: Version,
    },
    /// Neither.
    #[error("whose context? --platform tgl --engine rcs0")]
    Unsaid,
    /// There is no layout for it.
    #[error("{error}{}", engines_instead(error))]
    Layout {
        /// Why.
        #[from]
        error: LrcLayoutError,
    },
}

fn known_platforms() -> String {
    let known = Platform::all().iter().filter(|platform| platform.version() >= FIRST);
    known.map(Platform::name).collect::<Vec<_>>().join(", ")
}

fn engines(version: Version) -> String {
    Engine::all(version).map(|e| e.to_string()).collect::<Vec<_>>().join(", ")
}

/// The engines of graphics that do not have the one asked for.
fn engines_instead(error: &LrcLayoutError) -> String {
    match error {
        LrcLayoutError::NoEngine { version, .. } => format!("; it has {}", engines(*version)),
        _ => String::new(),
    }
}

/// A platform as people write it: its version, and the driver that is usual for it.
///
/// # Errors
/// When no platform is called so.
pub fn platform(text: &str) -> Result<(Version, IntelDriver), OwnerError> {
    intel_platform(text).ok_or_else(|| OwnerError::UnknownPlatform { name: text.to_owned() })
}

/// What options say of the owner of a context.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnerChoice<'a> {
    /// A platform, the PCI id of a chip, or a version of graphics.
    pub platform: Option<&'a str>,
    /// The engine.
    pub engine: Option<Engine>,
    /// The kernel driver that made the context; without it the platform's usual one.
    pub driver: Option<IntelDriver>,
}

impl OwnerChoice<'_> {
    /// Whether it says whose a context is, whatever the file says.
    pub fn is_whole(&self) -> bool {
        self.platform.is_some() && self.engine.is_some()
    }

    /// The owner; `told` is what the file says, and counts where the options do not say it. `None` where neither does.
    ///
    /// # Errors
    /// When the platform is not known, or one of platform and engine is missing.
    fn completed(&self, told: Option<LrcOwner>) -> Result<Option<LrcOwner>, OwnerError> {
        let (version, usual) = match (self.platform, told) {
            (Some(name), _) => platform(name)?,
            (None, Some(told)) => (told.version, told.driver),
            (None, None) if self.engine.is_none() => return Ok(None),
            (None, None) => return Err(OwnerError::NoPlatform),
        };
        let engine = self.engine.or(told.map(|t| t.engine)).ok_or(OwnerError::NoEngine { version })?;
        Ok(Some(LrcOwner { driver: self.driver.unwrap_or(usual), version, engine }))
    }

    /// The owner, which the options have to say.
    ///
    /// # Errors
    /// When they do not, or the platform is not known.
    pub fn owner(&self) -> Result<LrcOwner, OwnerError> {
        self.completed(None)?.ok_or(OwnerError::Unsaid)
    }

    /// The layout of a context: as the options say, and where they say nothing, as the dump does. `None` where neither says,
    /// or the dump says what cannot be.
    ///
    /// # Errors
    /// When what the options say cannot be.
    pub fn layout(&self, context: &Context) -> Result<Option<LrcLayout>, OwnerError> {
        if self.platform.is_none() && self.engine.is_none() && self.driver.is_none() {
            return Ok(context.told_layout());
        }
        let owner = self.completed(context.target)?;
        Ok(owner.map(LrcLayout::of).transpose()?)
    }
}
