//! The kernel's ascii85: five characters `!`–`u` for a dword, `z` for zero, no padding.
