// The benchmark's scenario in ns-3: flows of its TCP NewReno between two nodes, with all of its IP stack.
//
// ns3 FLOWS MBPS QUEUE_BYTES RTT_MS SECONDS PACKET_BYTES
//
// Prints one line of JSON: full packets that reached their sinks, and the seconds of processor time that the simulation took.

#include <cstdio>
#include <ctime>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

// Headers of IPv4 and of TCP with time stamps.
const uint32_t HEADERS = 52;
const uint32_t WINDOW = 64u << 20;
const uint16_t PORT = 9000;

}  // namespace

int main(int argc, char **argv) {
    if (argc != 7) {
        std::fprintf(stderr, "usage: ns3 FLOWS MBPS QUEUE_BYTES RTT_MS SECONDS PACKET_BYTES\n");
        return 2;
    }
    const int flows = std::stoi(argv[1]);
    const std::string rate = std::string(argv[2]) + "Mbps";
    const std::string room = std::string(argv[3]) + "B";
    const double rtt_ms = std::stod(argv[4]);
    const double seconds = std::stod(argv[5]);
    const uint32_t segment = std::stoul(argv[6]) - HEADERS;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(WINDOW));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(WINDOW));

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetDeviceAttribute("Mtu", UintegerValue(segment + HEADERS));
    link.SetChannelAttribute("Delay", TimeValue(MilliSeconds(rtt_ms / 2)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(room)));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    // Addresses bring a queueing discipline with them; the device's own queue is the one of the scenario.
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);

    ApplicationContainer sinks;
    for (int i = 0; i < flows; ++i) {
        const uint16_t port = PORT + i;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(nodes.Get(1)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
        source.SetAttribute("SendSize", UintegerValue(segment));
        source.Install(nodes.Get(0)).Start(Seconds(0));
    }

    Simulator::Stop(Seconds(seconds));
    const std::clock_t begin = std::clock();
    Simulator::Run();
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

    unsigned long long bytes = 0;
    for (uint32_t i = 0; i < sinks.GetN(); ++i) {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    Simulator::Destroy();
    std::printf("\n{\"packets\": %llu, \"seconds\": %.6f}\n", bytes / segment, took);
    return 0;
}
