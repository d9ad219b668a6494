//! The words of rules over dumps of amdgpu, reports of RADV and text of umr.
