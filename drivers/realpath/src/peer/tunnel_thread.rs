//! The tunnel of a peer, on a separate thread. They exchange requests and events through channels, so that no work of
//! the peer (writing to a slow ssh, starting processes) delays packets.

use crate::tunnel::{EndObserver, EndView, FlowMeter, OBSERVER_KEYS, TunnelEnd};
use narrows_cell::{Context, RunError};
use narrows_netns::Hosts;
use narrows_sys::cpu;
use narrows_sys::poll::{Epoll, Waker};
use narrows_tunnel::clock::Fit;
use narrows_units::Time;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

/// Requests to the tunnel.
enum TunnelRequest {
    /// The relation of the clocks.
    Fit,
    /// The counts of flows.
    Counts,
    /// Close the session and the logs.
    Close,
}

/// Events of the tunnel.
pub(super) enum TunnelEvent {
    /// An event for the process that started the peer; `open` and `clock`.
    Event(Value),
    /// The relation of the clocks, if it is known.
    Fit(Option<Fit>),
    /// The counts of flows at a time of this end's clock.
    Counts(Box<FlowMeter>, Time),
    /// The tunnel has ended: the content of `tunnel.json`, or an error.
    Over(Result<Value, RunError>),
}

/// The tunnel from the peer's view. It is closed regularly on drop.
pub(super) struct TunnelThread {
    thread: Option<JoinHandle<()>>,
    requests: Sender<TunnelRequest>,
    request_waker: Arc<Waker>,
    events: Receiver<TunnelEvent>,
    event_waker: Arc<Waker>,
}

impl TunnelThread {
    /// Opens `end` on a thread that works on `cpus`.
    pub(super) fn start(end: TunnelEnd, cpus: Vec<usize>) -> Result<TunnelThread, RunError> {
        let (requests, thread_requests) = channel();
        let (thread_events, events) = channel();
        let waker = || Waker::new().could_not("prepare a thread").map(Arc::new);
        let (request_waker, event_waker) = (waker()?, waker()?);
        let mut observer = ThreadObserver {
            requests: thread_requests,
            waker: request_waker.clone(),
            events: EventSender {
                events: thread_events,
                waker: event_waker.clone(),
            },
        };
        let work = move || {
            let over = run(end, &cpus, &mut observer);
            observer.events.send(TunnelEvent::Over(over));
        };
        let thread = std::thread::Builder::new().name("tunnel".to_owned());
        let thread = thread.spawn(work).could_not("start a thread")?;
        Ok(TunnelThread {
            thread: Some(thread),
            requests,
            request_waker,
            events,
            event_waker,
        })
    }

    /// The next event.
    pub(super) fn next_event(&self) -> Option<TunnelEvent> {
        self.event_waker.clear();
        match self.events.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(TunnelEvent::Over(Err(RunError::Internal(
                "the thread of the tunnel has crashed".to_owned(),
            )))),
        }
    }

    /// Requests the relation of the clocks, which arrives as an event.
    pub(super) fn request_fit(&self) {
        self.request(TunnelRequest::Fit);
    }

    /// Requests the counts of flows, which arrive as an event.
    pub(super) fn request_counts(&self) {
        self.request(TunnelRequest::Counts);
    }

    /// Lets the tunnel end.
    pub(super) fn close(&self) {
        self.request(TunnelRequest::Close);
    }

    fn request(&self, request: TunnelRequest) {
        // A thread that has ended has reported that.
        let _ = self.requests.send(request);
        self.request_waker.wake();
    }
}

/// Readable when there may be an event.
impl AsFd for TunnelThread {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (*self.event_waker).as_fd()
    }
}

impl Drop for TunnelThread {
    fn drop(&mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // A crash can no longer be reported.
            let _ = thread.join();
        }
    }
}

fn run(
    mut end: TunnelEnd,
    cpus: &[usize],
    observer: &mut ThreadObserver,
) -> Result<Value, RunError> {
    cpu::pin_to(cpus).could_not("pin the tunnel to a processor")?;
    // Waits of packets for this thread look like delays of the path. Not permitted to ordinary users.
    cpu::prefer(-10);
    cpu::short_slices();
    end.live(observer)?;
    end.finish(None)
}

/// The end of the channel at which the thread sends events.
struct EventSender {
    events: Sender<TunnelEvent>,
    waker: Arc<Waker>,
}

impl EventSender {
    fn send(&self, event: TunnelEvent) {
        // The peer may be ending.
        let _ = self.events.send(event);
        self.waker.wake();
    }
}

/// Observes the end on its thread.
struct ThreadObserver {
    requests: Receiver<TunnelRequest>,
    waker: Arc<Waker>,
    events: EventSender,
}

impl EndObserver for ThreadObserver {
    fn register(&mut self, epoll: &Epoll) -> Result<(), RunError> {
        let fd = (*self.waker).as_fd();
        epoll.add(fd, OBSERVER_KEYS).could_not("wait for events")
    }

    fn ready(&mut self, _key: u64) {
        self.waker.clear();
    }

    fn opened(
        &mut self,
        peer: Option<SocketAddr>,
        _hosts: &Hosts,
        _epoll: &Epoll,
    ) -> Result<(), RunError> {
        let peer = peer.map(|address| address.to_string());
        let event = json!({"event": "open", "peer": peer});
        self.events.send(TunnelEvent::Event(event));
        Ok(())
    }

    fn poll(&mut self, view: &EndView) -> Result<Option<&'static str>, RunError> {
        loop {
            match self.requests.try_recv() {
                Ok(TunnelRequest::Fit) => self.events.send(TunnelEvent::Fit(view.fit())),
                Ok(TunnelRequest::Counts) => {
                    if let Some((meter, at)) = view.meter() {
                        self.events.send(TunnelEvent::Counts(Box::new(meter), at));
                    }
                }
                Ok(TunnelRequest::Close) | Err(TryRecvError::Disconnected) => {
                    return Ok(Some("stopped"));
                }
                Err(TryRecvError::Empty) => return Ok(None),
            }
        }
    }

    fn notify(&mut self, event: Value) {
        self.events.send(TunnelEvent::Event(event));
    }
}
