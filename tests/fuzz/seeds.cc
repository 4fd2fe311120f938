// SPDX-License-Identifier: GPL-2.0
/*
 * Writes the seed corpus of every fuzz target below the directory given: the
 * golden frames, and one frame per opcode and L3 kind. Generated so that no
 * binary files live in the repository.
 */
#include "engine.h"
#include "frame.h"
#include "golden.h"
#include "model.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using bytes = std::vector<uint8_t>;

std::filesystem::path top;
unsigned written;

void write(const char *target, const std::string &name, const bytes &prefix,
	   std::span<const uint8_t> data)
{
	const auto dir = top / target;

	std::filesystem::create_directories(dir);
	std::ofstream out(dir / name, std::ios::binary);

	out.write(reinterpret_cast<const char *>(prefix.data()),
		  static_cast<std::streamsize>(prefix.size()));
	out.write(reinterpret_cast<const char *>(data.data()),
		  static_cast<std::streamsize>(data.size()));
	if (!out) {
		fprintf(stderr, "seeds: cannot write %s\n", (dir / name).c_str());
		exit(1);
	}
	written++;
}

/* One frame (with Ethernet header) as a seed of every target it fits. */
void seed(const std::string &name, const bytes &f)
{
	const auto p = frame::walk(f);

	write("frame", name, {0}, f);
	write("frame", name + "-repair", {1}, f);
	if (!p)
		return;

	const size_t len = p->transport.size();
	const auto kind = static_cast<uint8_t>(p->l3);

	write("bth", name, {static_cast<uint8_t>(len), static_cast<uint8_t>(len >> 8)},
	      p->transport.first(std::min<size_t>(len, ROCE_HDR_MAX)));
	write("icrc", name, {kind, 8, 0}, p->from_l3.first(p->from_l3.size() - ICRC_BYTES));
	write("crc", name, {2, 0, 17, 0, 0xff, 0xff, 0xff, 0xff}, p->from_l3);
}

} /* namespace */

int main(int argc, char **argv)
{
	const bytes ethernet = golden::hex("020000000002 020000000001 0800");

	if (argc != 2) {
		fprintf(stderr, "usage: seeds DIRECTORY\n");
		return 1;
	}
	top = argv[1];

	for (const golden::frame *g : golden::all()) {
		bytes f = g->data;

		if (!g->ethernet)
			f.insert(f.begin(), ethernet.begin(), ethernet.end());
		seed(std::string("golden-") + std::string(g->name, 2), f);
	}

	for (const model::op &o : model::ops())
		for (enum roce_l3 l3 : {ROCE_L3_GRH, ROCE_L3_IPV4, ROCE_L3_IPV6}) {
			const size_t address = l3 == ROCE_L3_IPV4 ? 4 : 16;
			const size_t payload = o.payload == 'M' ? 256 : o.payload == '0' ? 0 : 5;
			frame::net n;
			roce_hdr h{};

			n.l3 = l3;
			n.dmac.assign(6, 2);
			n.smac.assign(6, 4);
			n.src.assign(address, 0x0a);
			n.dst.assign(address, 0x0b);
			n.sport = 0xc001;
			h.opcode = o.opcode;
			h.pkey = ROCE_PKEY_DEFAULT;
			h.dqpn = 0x11;
			h.psn = 0xffffff;
			h.dmalen = 5;
			seed("op-" + std::to_string(o.opcode) + "-" + std::to_string(l3),
			     frame::build(n, h, bytes(payload, 0x5a), test_crc));
		}

	for (size_t len : {47, 48, 88, 100, 1279, 1280, 1600, 4108})
		write("crc", "length-" + std::to_string(len),
		      {1, 3, 45, 0, 0xe3, 0x20, 0xbb, 0xde}, bytes(len, 0xa7));

	for (uint8_t s : {0x00, 0x1f, 0x20, 0x3f, 0x60, 0x63, 0x80, 0xff})
		write("aeth", "syndrome-" + std::to_string(s), {s, s, 0, 0, 0}, {});

	printf("%u seeds\n", written);
	return 0;
}
