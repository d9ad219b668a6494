//! The words of rules over dumps of i915 and xe.
