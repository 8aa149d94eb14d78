//! The tunnel of a peer, on a thread of its own. The peer asks and hears through channels, so that nothing which the
//! peer does (writing to a slow ssh, starting processes) keeps packets waiting.

use crate::tunnel::{ATTENDANT, Attendant, End, View};
use narrows_cell::{Context, RunError};
use narrows_netns::Hosts;
use narrows_sys::cpu;
use narrows_sys::poll::{Epoll, Waker};
use narrows_tunnel::clock::Fit;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

/// What the tunnel may be asked.
enum TunnelRequest {
    /// The relation of the clocks.
    Fit,
    /// To say goodbye and close its logs.
    Close,
}

/// What the tunnel says.
pub(super) enum TunnelEvent {
    /// Something for whoever started the peer; `open` and `clock`.
    Event(Value),
    /// The relation of the clocks, if it is known.
    Fit(Option<Fit>),
    /// It is over: the content of `tunnel.json`, or why there is none.
    Over(Result<Value, RunError>),
}

/// The tunnel, as the peer sees it. Dropped, it is closed in order.
pub(super) struct TunnelThread {
    thread: Option<JoinHandle<()>>,
    asks: Sender<TunnelRequest>,
    wake: Arc<Waker>,
    news: Receiver<TunnelEvent>,
    hear: Arc<Waker>,
}

impl TunnelThread {
    /// Opens `end` on a thread that works on `cpus`.
    pub(super) fn start(end: End, cpus: Vec<usize>) -> Result<TunnelThread, RunError> {
        let (asks, asked) = channel();
        let (tell, news) = channel();
        let waker = || Waker::new().could_not("prepare a thread").map(Arc::new);
        let (wake, hear) = (waker()?, waker()?);
        let mut attendant = ThreadAttendant {
            asked,
            woken: wake.clone(),
            events: EventSender {
                tell,
                hear: hear.clone(),
            },
        };
        let work = move || {
            let over = run(end, &cpus, &mut attendant);
            attendant.events.send(TunnelEvent::Over(over));
        };
        let thread = std::thread::Builder::new().name("tunnel".to_owned());
        let thread = thread.spawn(work).could_not("start a thread")?;
        Ok(TunnelThread {
            thread: Some(thread),
            asks,
            wake,
            news,
            hear,
        })
    }

    /// Something that was said and not heard yet.
    pub(super) fn news(&self) -> Option<TunnelEvent> {
        self.hear.clear();
        match self.news.try_recv() {
            Ok(news) => Some(news),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(TunnelEvent::Over(Err(RunError::Internal(
                "the thread of the tunnel has crashed".to_owned(),
            )))),
        }
    }

    /// Asks for the relation of the clocks, which comes as news.
    pub(super) fn request_fit(&self) {
        self.ask(TunnelRequest::Fit);
    }

    /// Lets the tunnel end.
    pub(super) fn close(&self) {
        self.ask(TunnelRequest::Close);
    }

    fn ask(&self, ask: TunnelRequest) {
        // A thread that is gone has said so.
        let _ = self.asks.send(ask);
        self.wake.wake();
    }
}

/// Readable when there may be news.
impl AsFd for TunnelThread {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (*self.hear).as_fd()
    }
}

impl Drop for TunnelThread {
    fn drop(&mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // What it would say of a crash nobody hears any more.
            let _ = thread.join();
        }
    }
}

fn run(mut end: End, cpus: &[usize], attendant: &mut ThreadAttendant) -> Result<Value, RunError> {
    cpu::pin_to(cpus).could_not("pin the tunnel to a processor")?;
    // A packet that waits for us is late by as much as if the path had kept it. Refused to ordinary users.
    cpu::prefer(-10);
    cpu::short_slices();
    end.live(attendant)?;
    end.finish(None)
}

/// How the thread speaks.
struct EventSender {
    tell: Sender<TunnelEvent>,
    hear: Arc<Waker>,
}

impl EventSender {
    fn send(&self, news: TunnelEvent) {
        // The peer may be on its way out.
        let _ = self.tell.send(news);
        self.hear.wake();
    }
}

/// Stands by the end on its thread.
struct ThreadAttendant {
    asked: Receiver<TunnelRequest>,
    woken: Arc<Waker>,
    events: EventSender,
}

impl Attendant for ThreadAttendant {
    fn watch(&mut self, epoll: &Epoll) -> Result<(), RunError> {
        let fd = (*self.woken).as_fd();
        epoll.add(fd, ATTENDANT).could_not("wait for events")
    }

    fn woken(&mut self, _key: u64) {
        self.woken.clear();
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

    fn attend(&mut self, view: &View) -> Result<Option<&'static str>, RunError> {
        loop {
            match self.asked.try_recv() {
                Ok(TunnelRequest::Fit) => self.events.send(TunnelEvent::Fit(view.fit())),
                Ok(TunnelRequest::Close) | Err(TryRecvError::Disconnected) => {
                    return Ok(Some("stopped"));
                }
                Err(TryRecvError::Empty) => return Ok(None),
            }
        }
    }

    fn tell(&mut self, event: Value) {
        self.events.send(TunnelEvent::Event(event));
    }
}
