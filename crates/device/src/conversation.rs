//! A scripted kernel: the requests that a device must make, byte for byte, and the answers.
//!
//! Never: a device. It is what tests hold the devices to.

use crate::{Errno, Kernel, Mapping, PointedTo};
use std::collections::VecDeque;

/// A request, and the answer to it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The number of the request.
    pub code: u32,
    /// Its bytes, with zeros in the place of addresses of arrays.
    pub request: Vec<u8>,
    /// The arrays that it points to.
    pub arrays: Vec<Vec<u8>>,
    /// What the kernel leaves in its place, or why it refuses.
    pub answer: Result<Vec<u8>, Errno>,
    /// What the kernel leaves in the first array; empty: what was there.
    pub array_answer: Vec<u8>,
}

/// A list of exchanges.
#[derive(Debug, Default)]
pub struct Conversation {
    /// What is still to come.
    pub exchanges: VecDeque<Exchange>,
    /// What was mapped: offset and contents; `None` since it was taken away.
    pub mapped: Vec<Option<(u64, Vec<u8>)>>,
    /// What was asked that was not to be asked.
    pub unexpected: Vec<String>,
}

impl Kernel for Conversation {
    fn ask(&mut self, code: u32, request: &mut [u8], arrays: &mut [PointedTo<'_>]) -> Result<(), Errno> {
        let next = self.exchanges.pop_front();
        let given: Vec<Vec<u8>> = arrays.iter().map(|array| array.bytes.to_vec()).collect();
        let Some(next) =
            next.filter(|next| next.code == code && next.request == request && next.arrays == given)
        else {
            self.unexpected.push(format!("{code:#x} {request:x?} {given:x?}"));
            return Err(Errno::EINVAL);
        };
        let places = arrays.first_mut().map(|array| array.bytes.iter_mut());
        places.into_iter().flatten().zip(&next.array_answer).for_each(|(place, byte)| *place = *byte);
        let answer = next.answer?;
        let count = answer.len().min(request.len());
        request[..count].copy_from_slice(&answer[..count]);
        Ok(())
    }

    fn map(&mut self, offset: u64, size: u64) -> Result<Mapping, Errno> {
        self.mapped.push(Some((offset, vec![0; size as usize])));
        Ok(Mapping(self.mapped.len() - 1))
    }

    fn write(&mut self, mapping: Mapping, offset: u64, bytes: &[u8]) {
        let Some(Some((_, memory))) = self.mapped.get_mut(mapping.0) else {
            return;
        };
        let places = memory.iter_mut().skip(offset as usize);
        places.zip(bytes).for_each(|(place, byte)| *place = *byte);
    }

    fn read(&self, mapping: Mapping, offset: u64, size: u64) -> Option<Vec<u8>> {
        let (_, memory) = self.mapped.get(mapping.0)?.as_ref()?;
        Some(memory.get(offset as usize..)?.get(..size as usize)?.to_vec())
    }

    fn unmap(&mut self, mapping: Mapping) {
        if let Some(mapped) = self.mapped.get_mut(mapping.0) {
            *mapped = None;
        }
    }

    fn now(&self) -> (i64, i64) {
        (100, 5)
    }
}
