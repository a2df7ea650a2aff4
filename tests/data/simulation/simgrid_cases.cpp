// What SimGrid 4.1 makes of messages that transect simulates too: prints the simulated seconds of one case.
// How simgrid.json came about; not part of any build:
//   g++ -O1 -std=c++17 simgrid_cases.cpp -lsimgrid -o cases && ./cases NAME=VALUE… --log=root.thres:critical
// kind, ranks, bytes; latency_s and rate (bytes/s) of each of the two links of a route; cross: whether a flow's
// acknowledgements load the way back; node: ranks that share a link to other nodes (1: none);
// inside_latency_s, inside_rate: of the one link between ranks of a node; gamma: seconds per added byte;
// group, chunks; micro, forward_s, backward_s; skew: seconds by which ranks begin unequally.
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;
static std::map<std::string, std::string> given;

static double number(const char* name, double otherwise)
{
  auto found = given.find(name);
  return found == given.end() ? otherwise : std::stod(found->second);
}

static int ranks;
static double bytes, gamma_s;

static sg4::Mailbox* box(int from, int to, int tag = 0)
{
  return sg4::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to) + "#" + std::to_string(tag));
}

static char token;

static void add(double size)
{
  if (gamma_s > 0)
    sg4::this_actor::sleep_for(gamma_s * size);
}

static void send(int me, int to, double size) { box(me, to)->put(&token, static_cast<uint64_t>(size)); }

static void receive(int me, int from) { box(from, me)->get<char>(); }

static void exchange(int me, int to, int from, double size)
{
  auto sent = box(me, to)->put_async(&token, static_cast<uint64_t>(size));
  box(from, me)->get<char>();
  sent->wait();
}

static void ring(int me)
{
  for (int round = 0; round < 2 * (ranks - 1); round++) {
    exchange(me, (me + 1) % ranks, (me + ranks - 1) % ranks, bytes / ranks);
    if (round < ranks - 1)
      add(bytes / ranks);
  }
}

static void folded(int me, const std::function<void(int, const std::function<int(int)>&)>& inner)
{
  int power = 1;
  while (2 * power <= ranks)
    power *= 2;
  int more   = ranks - power;
  auto world = [more](int member) { return member < more ? 2 * member + 1 : member + more; };
  if (me < 2 * more && me % 2 == 0) {
    send(me, me + 1, bytes);
    receive(me, me + 1);
    return;
  }
  if (me < 2 * more) {
    receive(me, me - 1);
    add(bytes);
  }
  inner(me < 2 * more ? me / 2 : me - more, world);
  if (me < 2 * more)
    send(me, me - 1, bytes);
}

static void doubling(int me)
{
  folded(me, [me](int member, const std::function<int(int)>& world) {
    int power = 1;
    while (2 * power <= ranks)
      power *= 2;
    for (int d = 1; d < power; d *= 2) {
      int other = world(member ^ d);
      exchange(me, other, other, bytes);
      add(bytes);
    }
  });
}

static void rabenseifner(int me)
{
  folded(me, [me](int member, const std::function<int(int)>& world) {
    int power = 1;
    while (2 * power <= ranks)
      power *= 2;
    for (int d = 1; d < power; d *= 2) {
      int other = world(member ^ d);
      exchange(me, other, other, bytes / (2 * d));
      add(bytes / (2 * d));
    }
    for (int d = power / 2; d >= 1; d /= 2) {
      int other = world(member ^ d);
      exchange(me, other, other, bytes / (2 * d));
    }
  });
}

static void bcast(int me)
{
  int top = 1;
  while (top < ranks)
    top *= 2;
  for (int d = top / 2; d >= 1; d /= 2) {
    if (me % (2 * d) == 0 && me + d < ranks)
      send(me, me + d, bytes);
    else if (me % (2 * d) == d)
      receive(me, me - d);
  }
}

static void reduce(int me)
{
  for (int d = 1; d < ranks; d *= 2) {
    if (me % (2 * d) == d) {
      send(me, me - d, bytes);
      return;
    }
    if (me + d < ranks) {
      receive(me, me + d);
      add(bytes);
    }
  }
}

// Chains of `group` towards their first rank and a binomial tree over the first ranks, chunk by chunk. A rank
// receives one message at a time, and sends while it receives the next.
static void hierarchical(int me)
{
  int group = static_cast<int>(number("group", 8)), chunks = static_cast<int>(number("chunks", 1));
  int leaders = (ranks + group - 1) / group, own = me / group;
  std::vector<int> children;
  if (me % group + 1 < group && me + 1 < ranks)
    children.push_back(me + 1);
  int parent = me - 1;
  if (me % group == 0) {
    int step = 1;
    for (; step < leaders && own % (2 * step) == 0; step *= 2)
      if (own + step < leaders)
        children.push_back((own + step) * group);
    parent = me == 0 ? -1 : (own - step) * group;
  }
  auto summed = sg4::Semaphore::create(0);
  if (parent >= 0)
    sg4::this_actor::get_host()->add_actor("sender", [me, parent, chunks, summed]() {
      for (int k = 0; k < chunks; k++) {
        summed->acquire();
        send(me, parent, bytes / chunks);
      }
    });
  for (int k = 0; k < chunks; k++) {
    for (int child : children) {
      receive(me, child);
      add(bytes / chunks);
    }
    summed->release();
  }
}

static void pipeline(int me, bool gpipe)
{
  int micro       = static_cast<int>(number("micro", 4));
  double forward  = number("forward_s", 0), backward = number("backward_s", 0);
  int ahead       = gpipe ? micro : std::min(micro, ranks - 1 - me);
  int f = 0, b = 0;
  std::vector<sg4::CommPtr> kept;
  // Messages leave when they are sent, not when they are asked for.
  for (int i = 0; i < micro; i++)
    for (int back = 0; back < 2; back++)
      if (int from = back ? me + 1 : me - 1; from >= 0 && from < ranks)
        box(from, me, 2 * i + back)->set_receiver(sg4::Actor::self());
  auto pass = [&](bool back) {
    int number_ = back ? b++ : f++;
    int from = back ? me + 1 : me - 1, to = back ? me - 1 : me + 1;
    if (from >= 0 && from < ranks)
      box(from, me, 2 * number_ + back)->get<char>();
    sg4::this_actor::sleep_for(back ? backward : forward);
    if (to >= 0 && to < ranks)
      kept.push_back(box(me, to, 2 * number_ + back)->put_async(&token, static_cast<uint64_t>(bytes)));
  };
  while (f < ahead)
    pass(false);
  while (b < micro) {
    if (f < micro)
      pass(false);
    pass(true);
  }
  for (auto& one : kept)
    one->wait();
}

// Gradients in `chunks` buckets, each ready after its share of backward, all-reduced in a ring behind it.
static void buckets(int me)
{
  int count = static_cast<int>(number("chunks", 4));
  double backward = number("backward_s", 0), begin = sg4::Engine::get_clock();
  for (int k = 0; k < count; k++) {
    sg4::this_actor::sleep_until(begin + backward * (k + 1) / count);
    for (int round = 0; round < 2 * (ranks - 1); round++)
      exchange(me, (me + 1) % ranks, (me + ranks - 1) % ranks, bytes / count / ranks);
  }
  sg4::this_actor::sleep_until(begin + backward);
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  for (int i = 1; i < argc; i++) {
    std::string text = argv[i];
    auto at          = text.find('=');
    given[text.substr(0, at)] = text.substr(at + 1);
  }
  if (number("cross", 1) == 0)
    sg4::Engine::set_config("network/crosstraffic:no");
  ranks           = static_cast<int>(number("ranks", 2));
  bytes           = number("bytes", 0);
  gamma_s         = number("gamma", 0);
  double latency  = number("latency_s", 1e-6), rate = number("rate", 12.5e9);
  int node        = static_cast<int>(number("node", 1));
  std::string kind = given["kind"];
  std::vector<sg4::Host*> hosts;
  auto* root = engine.get_netzone_root();
  auto name  = [](const char* what, int i) { return what + std::to_string(i); };
  if (node == 1) {
    auto* zone = root->add_netzone_star("star");
    for (int i = 0; i < ranks; i++) {
      hosts.push_back(zone->add_host(name("h", i), 1e9));
      auto* link = zone->add_split_duplex_link(name("l", i), rate);
      link->set_latency(latency);
      zone->add_route(hosts[i], nullptr, {{link, sg4::LinkInRoute::Direction::UP}}, true);
    }
    zone->seal();
  } else {
    auto* zone = root->add_netzone_full("full");
    std::vector<sg4::SplitDuplexLink*> wires;
    for (int i = 0; i < ranks / node; i++) {
      wires.push_back(zone->add_split_duplex_link(name("w", i), rate));
      wires.back()->set_latency(latency);
    }
    for (int i = 0; i < ranks; i++)
      hosts.push_back(zone->add_host(name("h", i), 1e9));
    for (int i = 0; i < ranks; i++)
      for (int j = i + 1; j < ranks; j++) {
        if (i / node == j / node) {
          auto* own = zone->add_split_duplex_link(name("i", i) + name("-", j), number("inside_rate", 1e11));
          own->set_latency(number("inside_latency_s", 1e-7));
          zone->add_route(hosts[i], hosts[j], {{own, sg4::LinkInRoute::Direction::UP}}, true);
        } else {
          zone->add_route(hosts[i], hosts[j],
                          {{wires[i / node], sg4::LinkInRoute::Direction::UP},
                           {wires[j / node], sg4::LinkInRoute::Direction::DOWN}},
                          true);
        }
      }
    zone->seal();
  }
  double skew = number("skew", 0);
  std::vector<double> ends(ranks);
  for (int me = 0; me < ranks; me++)
    hosts[me]->add_actor(name("a", me), [me, kind, skew, &ends]() {
      if (skew > 0)
        sg4::this_actor::sleep_for(skew * (me * 7919 % 97) / 97.0);
      if (kind == "ring")
        ring(me);
      else if (kind == "recursive-doubling")
        doubling(me);
      else if (kind == "rabenseifner")
        rabenseifner(me);
      else if (kind == "bcast")
        bcast(me);
      else if (kind == "reduce")
        reduce(me);
      else if (kind == "hierarchical")
        hierarchical(me);
      else if (kind == "buckets")
        buckets(me);
      else if (kind == "gpipe" || kind == "1f1b")
        pipeline(me, kind == "gpipe");
      else
        xbt_die("no kind %s", kind.c_str());
      ends[me] = sg4::Engine::get_clock();
    });
  engine.run();
  double last = 0;
  for (double end : ends)
    last = std::max(last, end);
  std::printf("%.12g\n", last);
  return 0;
}
