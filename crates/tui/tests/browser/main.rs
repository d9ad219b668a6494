//! The browser driven as a user drives it: keys in, screens out, at three sizes, over every kind of file.

mod driver;
mod files;
mod journeys;
