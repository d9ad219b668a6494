//! Attachments: render targets, depth and stencil images, in memory or in GMEM.
