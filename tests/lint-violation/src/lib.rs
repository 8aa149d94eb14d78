//! Everything that is forbidden below `core/`, one function per rule.

/// Reads the wall clock.
pub fn clock() -> u64 {
    std::time::Instant::now().elapsed().as_secs()
}

/// Reads the time of day.
pub fn time_of_day() -> bool {
    std::time::SystemTime::now().elapsed().is_ok()
}

/// Starts a thread.
pub fn thread() {
    let _ = std::thread::spawn(|| ()).join();
}

/// Opens a socket.
pub fn socket() -> bool {
    std::net::UdpSocket::bind("127.0.0.1:0").is_ok()
}

/// Reads a file.
pub fn file() -> bool {
    std::fs::read("/dev/null").is_ok()
}

/// Depends on randomness that no seed controls.
pub fn dice() -> usize {
    std::collections::HashMap::<u8, u8>::new().len()
}

/// Writes to a terminal that it does not own.
pub fn terminal() {
    println!("hello");
}
