// The benchmark's scenario in csg-htsim: flows of its TCP through one queue, every packet acknowledged over a pipe.
//
// htsim FLOWS MBPS QUEUE_BYTES RTT_MS SECONDS PACKET_BYTES
//
// Prints one line of JSON: packets that reached their sinks, and the seconds of processor time that the event loop took.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

namespace {

// One connection with its routes, which packets refer to.
struct Flow {
    std::unique_ptr<TcpSrc> source;
    std::unique_ptr<TcpSink> sink;
    Route there;
    Route back;
};

}  // namespace

int main(int argc, char **argv) {
    if (argc != 7) {
        std::fprintf(stderr, "usage: htsim FLOWS MBPS QUEUE_BYTES RTT_MS SECONDS PACKET_BYTES\n");
        return 2;
    }
    const int flows = std::atoi(argv[1]);
    const double mbps = std::atof(argv[2]);
    const mem_b room = std::atoll(argv[3]);
    const double rtt_ms = std::atof(argv[4]);
    const double seconds = std::atof(argv[5]);
    const int packet = std::atoi(argv[6]);

    Packet::set_packet_size(packet);
    EventList &events = EventList::getTheEventList();
    EventList::setEndtime(timeFromSec(seconds));
    // No loggers: nothing is written.
    Queue bottleneck(speedFromMbps(mbps), room, events, nullptr);
    Pipe out(timeFromMs(rtt_ms / 2), events);
    Pipe home(timeFromMs(rtt_ms / 2), events);
    TcpRtxTimerScanner timers(timeFromMs(10.0), events);

    std::vector<std::unique_ptr<Flow>> all;
    for (int i = 0; i < flows; ++i) {
        all.emplace_back(new Flow);
        Flow &flow = *all.back();
        flow.source.reset(new TcpSrc(nullptr, nullptr, events));
        flow.sink.reset(new TcpSink());
        // Slow start until the first loss, as our flows have it.
        flow.source->set_ssthresh(0xffffffff);
        flow.there.push_back(&bottleneck);
        flow.there.push_back(&out);
        flow.there.push_back(flow.sink.get());
        flow.back.push_back(&home);
        flow.back.push_back(flow.source.get());
        timers.registerTcp(*flow.source);
        flow.source->connect(flow.there, flow.back, *flow.sink, timeFromMs(0.0));
    }

    const std::clock_t begin = std::clock();
    while (EventList::doNextEvent()) {
    }
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

    unsigned long long packets = 0;
    for (const auto &flow : all) {
        packets += flow->sink->_packets / static_cast<unsigned>(packet);
    }
    // Timeouts are printed to standard output by the library, so the result is the last line.
    std::printf("\n{\"packets\": %llu, \"seconds\": %.6f}\n", packets, took);
    return 0;
}
