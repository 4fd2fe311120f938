// SPDX-License-Identifier: GPL-2.0
/*
 * decode_test PROGRAM...
 *
 * Runs srn-decode (each PROGRAM is one build of it) on captures that are made
 * here from golden frames and built ones, and compares what it prints. Prints
 * a line per check and "N passed, N failed, N skipped".
 */
#include "aeth.h"
#include "crc32.h"
#include "frame.h"
#include "golden.h"
#include "psn.h"

#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <sys/wait.h>

namespace {

namespace fs = std::filesystem;
using frame::bytes;

constexpr uint32_t link_ethernet = 1, link_raw = 101, link_sll = 113, link_wifi = 105;

/* --- reporting ---------------------------------------------------------------- */

unsigned passed, failed;
std::string build_name;

void verdict(const std::string &name, bool good, const std::string &why)
{
	(good ? passed : failed)++;
	if (good)
		printf("ok - %s: %s\n", build_name.c_str(), name.c_str());
	else
		printf("not ok - %s: %s: %s\n", build_name.c_str(), name.c_str(), why.c_str());
	fflush(stdout);
}

/* --- capture files --------------------------------------------------------------- */

class file {
public:
	void le16(uint16_t v) { le(v, 2); }
	void le32(uint32_t v) { le(v, 4); }

	void be32(uint32_t v)
	{
		frame::put16(data, v >> 16);
		frame::put16(data, v & 0xffff);
	}

	void raw(const bytes &b) { frame::append(data, b); }

	void pad4() { data.resize((data.size() + 3) / 4 * 4); }

	bytes data;

private:
	void le(uint32_t v, int n)
	{
		while (n--) {
			data.push_back(static_cast<uint8_t>(v));
			v >>= 8;
		}
	}
};

/* A frame, and how much of it the capture shall hold. */
struct shot {
	bytes data;
	size_t captured;

	shot(const bytes &b) : data(b), captured(b.size()) {}
	shot(const bytes &b, size_t n) : data(b), captured(n) {}
};

/* One second apart from 12:00:00 on, with nanoseconds. */
constexpr uint32_t noon = 12 * 3600, nsec = 123456789;

bytes pcap(const std::vector<shot> &shots, uint32_t link = link_ethernet)
{
	file f;
	uint32_t t = noon;

	f.le32(0xa1b23c4d);
	f.le16(2);
	f.le16(4);
	f.le32(0);
	f.le32(0);
	f.le32(262144);
	f.le32(link);
	for (const shot &s : shots) {
		f.le32(t++);
		f.le32(nsec);
		f.le32(static_cast<uint32_t>(s.captured));
		f.le32(static_cast<uint32_t>(s.data.size()));
		f.raw(bytes(s.data.begin(), s.data.begin() + static_cast<ptrdiff_t>(s.captured)));
	}
	return f.data;
}

/* Big-endian, microseconds. */
bytes pcap_old(const bytes &one)
{
	file f;

	f.be32(0xa1b2c3d4);
	f.be32(0x00020004);
	f.be32(0);
	f.be32(0);
	f.be32(65535);
	f.be32(link_ethernet);
	f.be32(noon);
	f.be32(nsec / 1000);
	f.be32(static_cast<uint32_t>(one.size()));
	f.be32(static_cast<uint32_t>(one.size()));
	f.raw(one);
	return f.data;
}

bytes pcapng(const bytes &one)
{
	const uint32_t size = static_cast<uint32_t>(one.size());
	const uint32_t block = 32 + (size + 3) / 4 * 4;
	const uint64_t usec = uint64_t{noon} * 1000000 + nsec / 1000;
	file f;

	f.le32(0x0a0d0d0a);	/* section */
	f.le32(28);
	f.le32(0x1a2b3c4d);
	f.le16(1);
	f.le16(0);
	f.le32(0xffffffff);
	f.le32(0xffffffff);
	f.le32(28);
	f.le32(1);		/* interface */
	f.le32(20);
	f.le16(link_ethernet);
	f.le16(0);
	f.le32(65535);
	f.le32(20);
	f.le32(6);		/* packet */
	f.le32(block);
	f.le32(0);
	f.le32(static_cast<uint32_t>(usec >> 32));
	f.le32(static_cast<uint32_t>(usec));
	f.le32(size);
	f.le32(size);
	f.raw(one);
	f.pad4();
	f.le32(block);
	return f.data;
}

/* --- running the program ----------------------------------------------------------- */

struct result {
	int status = -1;	/* exit status, or 128 + signal */
	std::string out, err;

	std::vector<std::string> lines() const
	{
		std::vector<std::string> all;
		std::istringstream in(out);

		for (std::string line; std::getline(in, line);)
			all.push_back(line);
		return all;
	}

	std::string last() const
	{
		const auto all = lines();

		return all.empty() ? "" : all.back();
	}
};

class bench {
public:
	explicit bench(const std::string &program) : program_(program)
	{
		std::string name = (fs::temp_directory_path() / "srn-decode-XXXXXX").string();

		if (!mkdtemp(name.data())) {
			perror("mkdtemp");
			exit(2);
		}
		dir_ = name;
	}

	~bench() { fs::remove_all(dir_); }

	bench(const bench &) = delete;
	bench &operator=(const bench &) = delete;

	/* @args: with FILE in place of the capture's name; @out: where its output goes */
	result run(const std::string &args, const bytes &capture, std::string out = {}) const
	{
		const std::string in = dir_ / "capture";
		std::string command = "'" + program_ + "' " + args;
		result r;

		if (const size_t at = command.find("FILE"); at != std::string::npos)
			command.replace(at, 4, "'" + in + "'");
		std::ofstream(in, std::ios::binary)
			.write(reinterpret_cast<const char *>(capture.data()),
			       static_cast<std::streamsize>(capture.size()));
		if (out.empty())
			out = dir_ / "out";
		command = "timeout 60 " + command + " <'" + in + "' >'" + out + "' 2>'" +
			  (dir_ / "err").string() + "'";

		const int rc = system(command.c_str());

		r.status = WIFEXITED(rc) ? WEXITSTATUS(rc) : 128 + WTERMSIG(rc);
		r.out = slurp("out");
		r.err = slurp("err");
		return r;
	}

	/* The one line for the only frame of a capture. */
	std::string line(const shot &s, uint32_t link = link_ethernet) const
	{
		const result r = run("FILE", pcap({s}, link));

		return r.lines().size() == 1 && r.status == 0 ? r.lines()[0] : r.out + r.err;
	}

private:
	std::string slurp(const char *name) const
	{
		std::ostringstream all;

		all << std::ifstream(dir_ / name, std::ios::binary).rdbuf();
		return all.str();
	}

	std::string program_;
	fs::path dir_;
};

void same(const std::string &name, const std::string &got, const std::string &want)
{
	verdict(name, got == want, "got '" + got + "', want '" + want + "'");
}

void has(const std::string &name, const std::string &got, const std::string &part)
{
	verdict(name, got.find(part) != std::string::npos, "no '" + part + "' in '" + got + "'");
}

/* One line on standard error that names the program. */
void refused(const std::string &name, const result &r, const std::string &part)
{
	const bool one_line = r.err.starts_with("srn-decode: error: ") &&
			      r.err.find('\n') == r.err.size() - 1;

	verdict(name, r.status == 2 && one_line && r.err.find(part) != std::string::npos,
		"status " + std::to_string(r.status) + ", says '" + r.err + "'");
}

/* --- frames ------------------------------------------------------------------------- */

const frame::net net4 = {
	.l3 = ROCE_L3_IPV4,
	.dmac = {2, 0, 0, 0, 0, 2}, .smac = {2, 0, 0, 0, 0, 1},
	.src = {192, 0, 2, 1}, .dst = {192, 0, 2, 2}, .sport = 50000,
};

const frame::net net6 = {
	.l3 = ROCE_L3_IPV6,
	.dmac = {2, 0, 0, 0, 0, 2}, .smac = {2, 0, 0, 0, 0, 1},
	.src = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
	.dst = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}, .sport = 50000,
};

roce_hdr header(int opcode, uint32_t psn)
{
	roce_hdr h = {};

	h.opcode = static_cast<u8>(opcode);
	h.migreq = true;
	h.pkey = ROCE_PKEY_DEFAULT;
	h.dqpn = 0x11;
	h.psn = psn;
	return h;
}

bytes make(const roce_hdr &h, size_t payload = 0, const frame::net &n = net4)
{
	return frame::build(n, h, bytes(payload, 0x5a), crc32_sparse);
}

bytes make(int opcode, uint32_t psn, size_t payload = 0)
{
	return make(header(opcode, psn), payload);
}

bytes ack(uint8_t syndrome, uint32_t psn = 5)
{
	roce_hdr h = header(ROCE_OP_ACK, psn);

	h.syndrome = syndrome;
	h.msn = 7;
	return make(h);
}

bytes read_request(uint32_t psn, uint64_t va, uint32_t len)
{
	roce_hdr h = header(ROCE_OP_READ_REQUEST, psn);

	h.va = va;
	h.rkey = 0x99;
	h.dmalen = len;
	return make(h);
}

bytes with_tags(const bytes &f, const bytes &tags)
{
	bytes out(f.begin(), f.begin() + 12);

	frame::append(out, tags);
	out.insert(out.end(), f.begin() + 12, f.end());
	return out;
}

/* IPv4 header checksum of an Ethernet frame, after a change. */
bytes resum(bytes f)
{
	f[24] = f[25] = 0;

	const uint16_t sum = frame::ip_checksum(&f[14], 20);

	f[24] = static_cast<uint8_t>(sum >> 8);
	f[25] = static_cast<uint8_t>(sum);
	return f;
}

/* --- tests --------------------------------------------------------------------------- */

void golden_frames(const bench &b)
{
	same("X1", b.line(golden::X1().data),
	     "12:00:00.123456789 10.0.17.1:0 > 10.0.18.1 CNP qp=0x000118 psn=0x000000 migreq=0 becn pad=0 "
	     "payload=0 icrc=good");
	same("X2, without Ethernet", b.line(golden::X2().data, link_raw),
	     "12:00:00.123456789 192.168.0.7:49152 > 192.168.0.7 UC_SEND_ONLY qp=0x0000d3 "
	     "psn=0xcf1710 pad=2 payload=18 icrc=good");
	same("R1", b.line(golden::R1().data),
	     "12:00:00.123456789 192.168.1.1:49458 > 192.168.1.2 RC_SEND_ONLY qp=0x000011 "
	     "psn=0x000100 ackreq pad=3 payload=5 icrc=good");
	same("R2", b.line(golden::R2().data),
	     "12:00:00.123456789 [fe80::ff:fe00:2]:58177 > fe80::ff:fe00:1 RC_ACK qp=0x000012 "
	     "psn=0x000100 pad=0 aeth(ack msn=1) payload=0 icrc=good");
	same("R3, RoCEv1", b.line(golden::R3().data),
	     "12:00:00.123456789 fe80::ff:fe00:1 > fe80::ff:fe00:2 v1 UD_SEND_ONLY qp=0x000001 "
	     "psn=0x000000 migreq=0 pad=0 deth(qkey=0x80010000 sqp=0x000001) payload=16 icrc=good");
	same("R4", b.line(golden::R4().data),
	     "12:00:00.123456789 192.168.1.1:49458 > 192.168.1.2 RC_WRITE_ONLY qp=0x000011 "
	     "psn=0x000101 ackreq pad=0 reth(va=0x00007f0012345000 rkey=0x00000123 len=4) "
	     "payload=4 icrc=good");
	same("R5, without Ethernet", b.line(golden::R5().data, link_raw),
	     "12:00:00.123456789 192.168.1.2:49458 > 192.168.1.1 CNP qp=0x000012 psn=0x000000 "
	     "migreq=0 becn pad=0 payload=0 icrc=good");
}

void headers(const bench &b)
{
	roce_hdr h = header(ROCE_OP_SEND_ONLY_IMM, 1);

	h.imm = htonl(0x01020304);
	h.se = true;
	h.pkey = 0x8001;
	has("immediate, solicited, P_Key", b.line(make(h, 3)),
	    " pkey=0x8001 se pad=1 imm=0x01020304 payload=3 icrc=good");
	h = header(ROCE_OP_SEND_ONLY_INV, 1);
	h.inv_rkey = 0xabcd;
	has("invalidate", b.line(make(h)), " ieth(rkey=0x0000abcd) payload=0 icrc=good");
	h = header(ROCE_OP_COMPARE_SWAP, 1);
	h.va = 0x1000;
	h.rkey = 2;
	h.swap_add = 3;
	h.compare = 4;
	has("compare and swap", b.line(make(h)),
	    " atomiceth(va=0x0000000000001000 rkey=0x00000002 swap=0x0000000000000003 "
	    "compare=0x0000000000000004) payload=0 icrc=good");
	h.opcode = ROCE_OP_FETCH_ADD;
	has("fetch and add", b.line(make(h)), " add=0x0000000000000003) payload=0 icrc=good");
	h = header(ROCE_OP_ATOMIC_ACK, 1);
	h.syndrome = aeth_ack(AETH_CREDIT_NONE);
	h.orig = 0x1122334455667788;
	has("atomic acknowledge", b.line(make(h)),
	    " aeth(ack msn=0) atomicacketh(orig=0x1122334455667788) payload=0 icrc=good");
	has("IPv6", b.line(make(header(ROCE_OP_SEND_ONLY, 1), 8, net6)),
	    " [2001:db8::1]:50000 > 2001:db8::2 RC_SEND_ONLY qp=0x000011 psn=0x000001 pad=0 "
	    "payload=8 icrc=good");

	has("ACK with credits", b.line(ack(aeth_ack(3))), " aeth(ack credits=3 msn=7) ");
	has("RNR NAK", b.line(ack(aeth_rnr(1))), " aeth(rnr wait=0.01ms msn=7) ");
	has("RNR NAK, longest", b.line(ack(aeth_rnr(0))), " aeth(rnr wait=655.36ms msn=7) ");
	has("NAK of a gap", b.line(ack(AETH_NAK_PSN_SEQ)), " aeth(nak sequence msn=7) ");
	has("NAK of a request", b.line(ack(AETH_NAK_INV_REQ)), " aeth(nak invalid-request msn=7) ");
	has("NAK of access", b.line(ack(AETH_NAK_REM_ACCESS)), " aeth(nak remote-access msn=7) ");
	has("NAK of operation", b.line(ack(AETH_NAK_REM_OP)), " aeth(nak remote-operation msn=7) ");
	has("unknown NAK", b.line(ack(0x7f)), " aeth(nak 0x7f msn=7) ");
	has("reserved syndrome", b.line(ack(0x40)), " aeth(reserved 0x40 msn=7) ");

	frame::net marked = net4;

	marked.tos = 3;
	has("congestion mark", b.line(make(header(ROCE_OP_SEND_ONLY, 1), 4, marked)), " ce RC_");
}

void containers(const bench &b)
{
	const bytes &r1 = golden::R1().data;
	const std::string tail = " RC_SEND_ONLY qp=0x000011 psn=0x000100 ackreq pad=3 payload=5 icrc=good";
	bytes cooked = {0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0};
	bytes padded = make(ROCE_OP_SEND_ONLY, 1);

	has("VLAN", b.line(with_tags(r1, {0x81, 0, 0, 5})), " 192.168.1.2 vlan=5" + tail);
	has("two VLANs", b.line(with_tags(r1, {0x88, 0xa8, 0, 9, 0x81, 0, 0x60, 5})),
	    " vlan=9 vlan=5" + tail);
	has("VLAN and RoCEv1", b.line(with_tags(golden::R3().data, {0x81, 0, 0, 5})),
	    " v1 vlan=5 UD_SEND_ONLY");
	cooked.insert(cooked.end(), r1.begin() + 14, r1.end());
	has("Linux cooked capture", b.line(cooked, link_sll), tail);
	same("pcap of the other byte order", b.run("FILE", pcap_old(r1)).out,
	     "12:00:00.123456000 192.168.1.1:49458 > 192.168.1.2" + tail + "\n");
	same("pcapng", b.run("FILE", pcapng(r1)).out,
	     "12:00:00.123456000 192.168.1.1:49458 > 192.168.1.2" + tail + "\n");
	same("standard input", b.run("-", pcap({r1})).out, b.run("FILE", pcap({r1})).out);
	padded.resize(60);
	has("Ethernet padding is no trailer", b.line(padded), "payload=0 icrc=good");
	padded.resize(80);
	has("trailer", b.line(padded), "payload=0 trailer=22 icrc=good");
}

void damage(const bench &b)
{
	bytes f = golden::R1().data;

	f[f.size() - 8] ^= 1;
	has("a flipped bit of the payload", b.line(f), " payload=5 icrc=BAD");
	f = golden::R1().data;
	f.back() ^= 0x80;
	has("a flipped bit of the ICRC", b.line(f), " icrc=BAD");
	f = golden::R1().data;
	f[15] ^= 0xff;
	f[22] = 3;
	has("a router's changes", b.line(resum(f)), " icrc=good");
	f[22] = 2;
	has("IP checksum", b.line(f), " icrc=good MALFORMED: IP checksum is wrong");

	f = golden::R1().data;
	f[39] ^= 4;
	has("UDP length", b.line(f), " icrc=? MALFORMED: UDP length is 36, IP has 32");
	f = golden::R1().data;
	f[40] = 0x12;
	has("UDP checksum", b.line(f), " icrc=good MALFORMED: UDP checksum is wrong");
	f = golden::R1().data;
	f[20] |= 0x20;
	has("fragment", b.line(resum(f)), " icrc=? MALFORMED: IP fragment");
	f = golden::R1().data;
	f[17] = 200;
	has("IP length", b.line(resum(f)), " MALFORMED: IP length is 200, frame has 52, ");

	has("cut by the capture", b.line({golden::R4().data, 58}),
	    " RC_WRITE_ONLY qp=0x000011 psn=0x000101 ackreq pad=0 icrc=? (cut by the capture)");
	f = golden::R1().data;
	f[43] |= 5;
	has("transport version", b.line(f), " icrc=BAD MALFORMED: transport version is 5");
	f = golden::R1().data;
	f[42] = 0x18;
	has("opcode", b.line(f), " OPCODE_0x18 qp=0x000011 psn=0x000100 ackreq pad=3 icrc=BAD "
				 "MALFORMED: unknown opcode");

	has("FIRST that is not full", b.line(make(ROCE_OP_SEND_FIRST, 1, 1000)),
	    " icrc=good MALFORMED: payload is no path MTU though more follows");
	has("MIDDLE that is empty", b.line(make(ROCE_OP_SEND_MIDDLE, 1, 0)), " MALFORMED: ");
	has("LAST that is empty", b.line(make(ROCE_OP_SEND_LAST, 1, 0)),
	    " icrc=good MALFORMED: nothing in the last packet");
	has("ACK with payload", b.line(make(ROCE_OP_ACK, 1, 4)),
	    " icrc=good MALFORMED: payload or pad where none belongs");
	has("more than a packet", b.line(make(ROCE_OP_SEND_ONLY, 1, 4100)),
	    " icrc=good MALFORMED: more than one packet holds");
}

/* No length and no bit of a frame may crash it or pass as good. */
void every_cut(const bench &b)
{
	for (const golden::frame *g : golden::all()) {
		const size_t l3 = g->ethernet ? 14 : 0;
		const uint32_t link = g->ethernet ? link_ethernet : link_raw;
		std::vector<shot> wire, kept, bits;
		unsigned bad = 0, good = 0, lines = 0;

		for (size_t n = 0; n < g->data.size(); n++) {
			wire.push_back(bytes(g->data.begin(),
					     g->data.begin() + static_cast<ptrdiff_t>(n)));
			kept.emplace_back(g->data, n);
		}
		for (size_t bit = l3 * 8; bit < g->data.size() * 8; bit++) {
			bytes f = g->data;

			f[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
			bits.push_back(f);
		}
		const std::string name = g->name;

		for (const auto &[what, shots] : {std::pair{"too short", &wire}, {"cut", &kept}}) {
			const result r = b.run("--quiet FILE", pcap(*shots, link));

			verdict(name + " at every length, " + what,
				r.status == 0 && r.err.empty() && r.lines().size() >= 16 &&
				r.out.find("icrc=good") == std::string::npos,
				"status " + std::to_string(r.status) + r.err + r.out);
		}
		const result r = b.run("FILE", pcap(bits, link));

		for (const std::string &line : r.lines()) {
			lines++;
			bad += line.find("icrc=BAD") != std::string::npos;
			good += line.find("icrc=good") != std::string::npos &&
				line.find("MALFORMED") == std::string::npos;
		}
		/* ToS and TTL need a new IP checksum; IPv6 and the BTH have 44 bits more */
		verdict(name + " with every bit flipped",
			r.status == 0 && r.err.empty() && bad > bits.size() / 3 && good <= 44 &&
			lines > bits.size() * 3 / 4,
			std::to_string(bits.size()) + " bits: " + std::to_string(lines) + " lines, " +
			std::to_string(bad) + " bad, " + std::to_string(good) + " good; " + r.err);
	}
}

void damaged_files(const bench &b)
{
	const bytes whole = pcap({golden::R1().data, golden::R4().data});
	bytes part(whole.begin(), whole.end() - 10);
	const result r = b.run("--check FILE", part);

	refused("a file that ends within a frame", r, "truncated");
	has("and what is in front of that", r.out, "psn=0x000100");
	refused("an empty file", b.run("FILE", {}), "truncated");
	refused("a file that is no capture", b.run("FILE", bytes(500, 'x')), "unknown file format");
	refused("standard input that is no capture", b.run("-", bytes(500, 'x')), "standard input: ");
	refused("a link type that is not known", b.run("FILE", pcap({}, link_wifi)), "link type");
	refused("a file that is not there", b.run("/nothing/there", {}), "No such file");

	/* whatever is behind a good header, it ends in order */
	std::mt19937 random(1);
	std::string trouble;

	for (int i = 0; i < 60 && trouble.empty(); i++) {
		bytes f = whole;

		if (i % 2)
			for (int k = 0; k < 6; k++)
				f[24 + random() % (f.size() - 24)] = static_cast<uint8_t>(random());
		else
			for (size_t k = 24; k < f.size(); k++)
				f[k] = static_cast<uint8_t>(random());
		const result g = b.run("--summary --check FILE", f);

		if (g.status > 2 || (g.status == 2 && !g.err.starts_with("srn-decode: error: ")))
			trouble = "round " + std::to_string(i) + ": status " +
				  std::to_string(g.status) + " " + g.err;
	}
	verdict("files of garbage", trouble.empty(), trouble);

	/* frames of garbage behind headers that lead to the decoder */
	std::vector<shot> shots;

	for (int i = 0; i < 4000; i++) {
		bytes f = make(static_cast<int>(random() & 0x9f), random() & PSN_MASK, random() % 64);
		const size_t from = i % 3 == 0 ? 14 : 36;

		for (int k = 0; k < 1 + i % 5; k++)
			f[from + random() % (f.size() - from)] = static_cast<uint8_t>(random());
		if (i % 4 == 0)
			f.resize(random() % f.size());
		shots.emplace_back(f, i % 7 ? f.size() : random() % (f.size() + 1));
	}
	const result g = b.run("--summary --check FILE", pcap(shots));

	verdict("frames of garbage", g.status == 1 && g.err.empty(),
		"status " + std::to_string(g.status) + " " + g.err);
}

void checks(const bench &b)
{
	bytes bad = golden::R1().data;
	const bytes other(60, 0);
	result r = b.run("--check --quiet FILE", pcap({golden::R1().data, golden::R2().data, other}));

	bad.back() ^= 1;
	verdict("--check passes good frames", r.status == 0, r.out);
	same("--quiet prints no good frames", r.out,
	     "2 RoCE frames, 1 others; 0 bad ICRC, 0 malformed, 0 cut\n");
	r = b.run("--check --quiet FILE", pcap({golden::R1().data, bad}));
	verdict("--check finds a bad ICRC", r.status == 1 && r.lines().size() == 2, r.out);
	verdict("--check finds a malformed frame",
		b.run("--check FILE", pcap({make(ROCE_OP_SEND_LAST, 1, 0)})).status == 1, "");
	verdict("--check finds a cut frame",
		b.run("--check FILE", pcap({{golden::R1().data, 60}})).status == 1, "");
	r = b.run("--check FILE", pcap({other}));
	verdict("--check finds that there is nothing", r.status == 1, r.out);
	verdict("without --check they are no failure", b.run("FILE", pcap({bad})).status == 0, "");

	has("--help", b.run("--help", {}).out, "usage: srn-decode");
	refused("unknown option", b.run("--nothing FILE", {}), "--nothing");
	refused("no file", b.run("--check", {}), "--help");
	refused("two files", b.run("FILE x", {}), "--help");
	if (fs::exists("/dev/full"))
		refused("no room for the output", b.run("FILE", pcap({bad}), "/dev/full"),
			"cannot write");
}

std::string counts(const bench &b, const std::vector<shot> &shots)
{
	const result r = b.run("--quiet --summary FILE", pcap(shots));

	const auto lines = r.lines();

	/* in front are the lines of damaged frames */
	return lines.size() >= 2 ? lines.end()[-2] : r.out + r.err;
}

void summaries(const bench &b)
{
	bytes bad = make(ROCE_OP_SEND_ONLY, 3, 4);
	const std::string head = "192.0.2.1 > 192.0.2.2 qp=0x000011 RC ";

	bad.back() ^= 1;
	same("in order, over the end of the PSNs",
	     counts(b, {make(ROCE_OP_SEND_FIRST, 0xfffffe, 256), make(ROCE_OP_SEND_MIDDLE, 0xffffff, 256),
			make(ROCE_OP_SEND_LAST, 0, 3)}),
	     head + "packets=3 bytes=515 ack=0 nak=0 rnr=0 gaps=0 missing=0 retransmitted=0 bad=0 malformed=0");
	same("gap and retransmission",
	     counts(b, {make(ROCE_OP_SEND_ONLY, 1, 4), make(ROCE_OP_SEND_ONLY, 4, 4),
			make(ROCE_OP_SEND_ONLY, 2, 4), make(ROCE_OP_SEND_ONLY, 3, 4),
			make(ROCE_OP_SEND_ONLY, 4, 4), make(ROCE_OP_SEND_ONLY, 5, 4)}),
	     head + "packets=6 bytes=24 ack=0 nak=0 rnr=0 gaps=1 missing=2 retransmitted=3 bad=0 malformed=0");
	same("acknowledgements",
	     counts(b, {ack(0x1f, 1), ack(0x1f, 9), ack(AETH_NAK_PSN_SEQ, 10), ack(aeth_rnr(1), 10)}),
	     head + "packets=4 bytes=0 ack=2 nak=1 rnr=1 gaps=0 missing=0 retransmitted=0 bad=0 malformed=0");
	same("a damaged frame counts for nothing else",
	     counts(b, {make(ROCE_OP_SEND_ONLY, 1, 4), bad, make(ROCE_OP_SEND_ONLY, 2, 4)}),
	     head + "packets=3 bytes=8 ack=0 nak=0 rnr=0 gaps=0 missing=0 retransmitted=0 bad=1 malformed=0");
	/* 300 bytes: path MTU 512 or more; 3000 bytes as three packets: 1024 */
	has("PSNs of READs, path MTU found out",
	    counts(b, {read_request(1, 0, 300), read_request(2, 0, 3000), read_request(5, 0, 300),
		       read_request(6, 0, 5000), make(ROCE_OP_SEND_ONLY, 11, 4)}),
	    " gaps=0 missing=0 retransmitted=0 ");
	has("a READ that asks for the rest",
	    counts(b, {read_request(1, 0x1000, 16384), read_request(5, 0x2000, 12288),
		       make(ROCE_OP_SEND_ONLY, 17, 4)}),
	    " gaps=0 missing=0 retransmitted=1 ");
	has("a READ followed by a gap",
	    counts(b, {make(ROCE_OP_WRITE_FIRST, 1, 4096), make(ROCE_OP_WRITE_LAST, 2, 4),
		       read_request(3, 0x1000, 16384), make(ROCE_OP_SEND_ONLY, 9, 4)}),
	    " gaps=1 missing=2 retransmitted=0 ");
	has("data of READs",
	    counts(b, {make(ROCE_OP_READ_RESP_FIRST, 1, 256), make(ROCE_OP_READ_RESP_MIDDLE, 2, 256),
		       make(ROCE_OP_READ_RESP_LAST, 4, 4), make(ROCE_OP_READ_RESP_ONLY, 9, 4),
		       make(ROCE_OP_READ_RESP_ONLY, 3, 4)}),
	    " gaps=1 missing=1 retransmitted=1 ");

	roce_hdr ud = header(ROCE_UD_SEND_ONLY, 1);

	ud.sqpn = 0x22;
	same("datagrams", counts(b, {make(ud, 100)}),
	     "192.0.2.1 > 192.0.2.2 qp=0x000011 UD sqp=0x000022 packets=1 bytes=100 bad=0 malformed=0");

	const result r = b.run("--quiet --summary FILE",
			       pcap({make(ROCE_OP_SEND_ONLY, 1, 4), make(ud, 4),
				     make(header(ROCE_OP_SEND_ONLY, 1), 4, net6)}));

	verdict("a line for each flow", r.lines().size() == 4, r.out);
	same("and a last one", r.last(), "3 RoCE frames, 0 others; 0 bad ICRC, 0 malformed, 0 cut");
}

} /* namespace */

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: decode_test PROGRAM...\n");
		return 2;
	}
	setenv("TZ", "UTC", 1);
	for (int i = 1; i < argc; i++) {
		const bench b(argv[i]);

		build_name = fs::path(argv[i]).parent_path().filename();
		golden_frames(b);
		headers(b);
		containers(b);
		damage(b);
		every_cut(b);
		damaged_files(b);
		checks(b);
		summaries(b);
	}
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
