//! Makes the tables of Adreno that are not registers.

pub mod formats;
