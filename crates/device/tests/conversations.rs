//! What the devices ask their kernels, byte for byte, and what they make of the answers.

use unwedge_device::{
    Conversation, DeviceEnd, DeviceError, DeviceStream, Errno, Exchange, KgslDevice, MsmDevice, SubmitDevice,
};

const BUFFER: u64 = 0x1_0000_1000;

/// Fields of a structure: a number and its bytes.
fn bytes(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|&(value, size)| value.to_ne_bytes()[..size].to_vec()).collect()
}

fn said(code: u32, request: &[(u64, usize)], answer: Result<Vec<u8>, Errno>) -> Exchange {
    Exchange { code, request: bytes(request), arrays: Vec::new(), answer, array_answer: Vec::new() }
}

fn param(param: u64, answer: Result<u64, Errno>) -> Exchange {
    let fields = |value| [(0x10, 4), (param, 4), (value, 8), (0, 4), (0, 4)];
    said(0xc018_6440, &fields(0), answer.map(|value| bytes(&fields(value))))
}

fn info(handle: u64, what: u64, value: u64, answer: Result<u64, Errno>) -> Exchange {
    let fields = |value| [(handle, 4), (what, 4), (value, 8), (0, 4), (0, 4)];
    said(0xc018_6443, &fields(value), answer.map(|value| bytes(&fields(value))))
}

/// The driver is opened: addresses from 4 GiB, queue 3.
fn opened() -> Vec<Exchange> {
    let queue = said(0xc00c_644a, &[(0, 4), (0, 4), (0, 4)], Ok(bytes(&[(0, 4), (0, 4), (3, 4)])));
    vec![param(0xe, Ok(1 << 32)), param(0xf, Ok(1 << 32)), queue]
}

/// A buffer object with handle 7 of one page at its address.
fn made(placed: Result<u64, Errno>) -> Vec<Exchange> {
    let new = |handle| [(0x1000, 8), (0x2_0000, 4), (handle, 4)];
    let mut made = vec![said(0xc010_6442, &new(0), Ok(bytes(&new(7))))];
    let is_placed = placed.is_ok();
    made.push(info(7, 4, BUFFER, placed));
    made.push(match is_placed {
        true => info(7, 0, 0, Ok(0x5000)),
        false => said(0x4008_6409, &[(7, 4), (0, 4)], Ok(Vec::new())),
    });
    made
}

/// A stream of 16 bytes at 32 in the buffer; fence 9.
fn submitted(wait: Result<(), Errno>, faults: [u64; 2]) -> Vec<Exchange> {
    let submit = |fence| {
        let head = [(0x10, 4), (fence, 4), (1, 4), (1, 4), (0, 8), (0, 8), (0, 4), (3, 4)];
        bytes(&[&head[..], &[(0, 8), (0, 8), (0, 4), (0, 4), (16, 4), (0, 4)]].concat())
    };
    let bos = bytes(&[(7, 4), (7, 4), (BUFFER, 8)]);
    let cmds = bytes(&[(1, 4), (0, 4), (32, 4), (16, 4), (0, 4), (0, 4), (0, 8)]);
    let answer = Ok(submit(9));
    let wait_request = [(9, 4), (0, 4), (110, 8), (5, 8), (3, 4), (0, 4)];
    let is_over = wait.is_ok();
    let mut all = vec![
        param(9, Ok(faults[0])),
        Exchange { code: 0xc048_6446, request: submit(0), arrays: vec![bos, cmds], ..said(0, &[], answer) },
        said(0x4020_6447, &wait_request, wait.map(|()| Vec::new())),
    ];
    all.extend(is_over.then(|| param(9, Ok(faults[1]))));
    all
}

fn talk(exchanges: impl IntoIterator<Item = Vec<Exchange>>) -> Conversation {
    Conversation { exchanges: exchanges.into_iter().flatten().collect(), ..Conversation::default() }
}

fn over(conversation: &Conversation) {
    assert_eq!(conversation.unexpected, Vec::<String>::new());
    assert!(conversation.exchanges.is_empty(), "{:x?}", conversation.exchanges);
}

const STREAM: DeviceStream = DeviceStream { iova: BUFFER + 32, size: 16 };

#[test]
fn msm_executes_a_stream_at_its_address() {
    let prep = said(0x4018_6444, &[(7, 4), (1, 4), (110, 8), (5, 8)], Ok(Vec::new()));
    let closed = vec![info(7, 4, 0, Ok(0)), said(0x4008_6409, &[(7, 4), (0, 4)], Ok(Vec::new()))];
    let all = [opened(), made(Ok(BUFFER)), submitted(Ok(()), [2, 2]), vec![prep], closed];
    let mut device = MsmDevice::open(talk(all)).unwrap();
    assert_eq!(device.addresses(), 1 << 32..2 << 32);
    device.load(BUFFER, 0x1000, &[1, 2, 3]).unwrap();
    assert_eq!(device.submit(&[STREAM]), Ok(DeviceEnd::Done));
    assert_eq!(device.read(BUFFER + 1, 3), Ok(Some(vec![2, 3, 0])));
    assert_eq!(device.read(BUFFER + 0xfff, 2), Ok(None), "past the end of the buffer");
    assert_eq!(device.kernel().mapped[0].as_ref().map(|(offset, _)| *offset), Some(0x5000));
    device.clear().unwrap();
    assert_eq!(device.kernel().mapped, [None]);
    over(device.kernel());
}

#[test]
fn msm_hangs_by_its_fence_and_by_the_faults_that_the_kernel_counts() {
    for (wait, faults) in [(Err(Errno::ETIMEDOUT), [0, 0]), (Ok(()), [2, 3])] {
        let mut device =
            MsmDevice::open(talk([opened(), made(Ok(BUFFER)), submitted(wait, faults)])).unwrap();
        device.load(BUFFER, 0x1000, &[]).unwrap();
        assert_eq!(device.submit(&[STREAM]), Ok(DeviceEnd::Hung));
        over(device.kernel());
    }
}

#[test]
fn msm_says_what_the_kernel_refuses() {
    let old = MsmDevice::open(talk([vec![param(0xe, Err(Errno::EINVAL))]])).err().unwrap();
    assert_eq!(old, DeviceError::NoSetIova(Errno::EINVAL));
    assert!(old.to_string().contains("MSM_INFO_SET_IOVA"), "{old}");
    let queue = said(0xc00c_644a, &[(0, 4), (0, 4), (0, 4)], Err(Errno::EPERM));
    let refused = MsmDevice::open(talk([opened()[..2].to_vec(), vec![queue]])).err().unwrap();
    assert_eq!(refused.to_string(), "DRM_MSM_SUBMITQUEUE_NEW: EPERM, not permitted");

    for errno in [Errno::EBUSY, Errno::ENOSPC, Errno::ENOSYS, Errno::EOPNOTSUPP] {
        let mut device = MsmDevice::open(talk([opened(), made(Err(errno))])).unwrap();
        let error = device.load(BUFFER, 0x1000, &[]).unwrap_err();
        let expected = match errno {
            Errno::EBUSY | Errno::ENOSPC => DeviceError::Taken { iova: BUFFER, size: 0x1000, errno },
            _ => DeviceError::NoSetIova(errno),
        };
        assert_eq!(error, expected);
        // The object is given back.
        over(device.kernel());
    }

    let mut device = MsmDevice::open(talk([opened()])).unwrap();
    assert!(matches!(device.load(0x1000, 0x1000, &[]), Err(DeviceError::Beyond { iova: 0x1000, .. })));
    assert!(matches!(device.load(u64::MAX, 0x1000, &[]), Err(DeviceError::Beyond { .. })));
    assert_eq!(device.submit(&[STREAM]), Err(DeviceError::NoStream(STREAM.iova)));
    over(device.kernel());
}

const START: u64 = 0x5_0000_0000;

fn kgsl_opened() -> Vec<Exchange> {
    let alloc =
        |id, address| bytes(&[(id, 4), (0x8000_0000, 4), (1 << 30, 8), (0, 8), (address, 8), (0, 8), (0, 8)]);
    vec![
        Exchange { code: 0xc030_0934, request: alloc(0, 0), ..said(0, &[], Ok(alloc(6, START))) },
        kgsl_context(2),
    ]
}

/// Saves GMEM, has a preamble, and ends when it faults.
fn kgsl_context(number: u64) -> Exchange {
    said(0xc008_0913, &[(0x213, 4), (0, 4)], Ok(bytes(&[(0x213, 4), (number, 4)])))
}

/// How a wait of KGSL ends: the reset status of the context after it, or why it does not come to its end.
type KgslWait = Result<u32, Errno>;

fn kgsl_submitted(wait: KgslWait) -> Vec<Exchange> {
    let command = |stamp| {
        let head = [(4, 8), (0, 8), (32, 4), (1, 4), (0, 8), (0, 4), (0, 4)];
        bytes(&[&head[..], &[(0, 8), (0, 4), (0, 4), (2, 4), (stamp, 4)]].concat())
    };
    let list = bytes(&[(0, 8), (START + 16, 8), (8, 8), (1, 4), (6, 4)]);
    let mut all = vec![
        Exchange {
            code: 0xc040_094a,
            request: command(0),
            arrays: vec![list],
            ..said(0, &[], Ok(command(44)))
        },
        said(0x400c_0907, &[(2, 4), (44, 4), (10_000, 4)], wait.map(|_| Vec::new())),
    ];
    // The value is the context, then its status.
    all.extend(wait.ok().map(|status| Exchange {
        arrays: vec![bytes(&[(2, 4)])],
        array_answer: bytes(&[(status.into(), 4)]),
        ..said(0xc018_0902, &[(9, 4), (0, 4), (0, 8), (4, 8)], Ok(Vec::new()))
    }));
    all
}

#[test]
fn kgsl_executes_a_stream_in_its_memory() {
    // Not reset; guilty; innocent, which is executed again; nobody knows.
    let ends: [(KgslWait, Result<DeviceEnd, DeviceError>); 5] = [
        (Ok(0), Ok(DeviceEnd::Done)),
        (Ok(1), Ok(DeviceEnd::Hung)),
        (Ok(2), Ok(DeviceEnd::Done)),
        (Ok(3), Ok(DeviceEnd::Hung)),
        (Err(Errno::ETIMEDOUT), Ok(DeviceEnd::Hung)),
    ];
    let refused =
        DeviceError::Refused { request: "IOCTL_KGSL_DEVICE_WAITTIMESTAMP_CTXTID", errno: Errno::EPERM };
    for (wait, end) in
        ends.into_iter().chain([(Err(Errno(35)), Ok(DeviceEnd::Hung)), (Err(Errno::EPERM), Err(refused))])
    {
        // A context that hung is given back for another one.
        let again = match end {
            Ok(DeviceEnd::Hung) => vec![said(0x4004_0914, &[(2, 4)], Ok(Vec::new())), kgsl_context(3)],
            _ => Vec::new(),
        };
        let mut device = KgslDevice::open(talk([kgsl_opened(), kgsl_submitted(wait), again])).unwrap();
        assert_eq!(device.kernel().mapped[0].as_ref().map(|(offset, _)| *offset), Some(6 << 12));
        device.load(START, 0x1000, &[9; 4]).unwrap();
        assert_eq!(device.submit(&[DeviceStream { iova: START + 16, size: 8 }]), end);
        assert_eq!(device.read(START + 2, 4), Ok(Some(vec![9, 9, 0, 0])));
        over(device.kernel());
    }
}

#[test]
fn kgsl_gives_out_its_own_addresses_only_and_each_once() {
    let mut device = KgslDevice::open(talk([kgsl_opened()])).unwrap();
    assert!(matches!(device.load(BUFFER, 16, &[]), Err(DeviceError::Beyond { .. })));
    device.load(START + 0x1000, 0x1000, &[7; 0x1000]).unwrap();
    assert!(matches!(device.load(START, 0x1001, &[]), Err(DeviceError::Taken { .. })));
    assert_eq!(device.read(START, 4), Ok(None));
    device.clear().unwrap();
    device.load(START, 0x2000, &[]).unwrap();
    assert_eq!(device.read(START + 0x1000, 4), Ok(Some(vec![0; 4])), "what was there before is gone");
    let refused =
        KgslDevice::open(talk([vec![Exchange { answer: Err(Errno::EPERM), ..kgsl_opened().remove(0) }]]));
    assert_eq!(refused.err().unwrap().to_string(), "IOCTL_KGSL_GPUMEM_ALLOC_ID: EPERM, not permitted");
}
