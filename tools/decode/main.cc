// SPDX-License-Identifier: GPL-2.0
/*
 * srn-decode: the RoCE frames of a capture file, one per line.
 *
 * Reads with libpcap what tcpdump, dumpcap and others write (pcap, pcapng).
 * Exit status: 0, 1 when --check found something, 2 when it could not be done.
 */
#include "flows.h"
#include "frame.h"
#include "text.h"

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <getopt.h>
#include <memory>
#include <pcap/pcap.h>
#include <stdexcept>
#include <string>

namespace {

using namespace decode;

constexpr char usage[] =
	"usage: srn-decode [OPTION...] FILE\n"
	"\n"
	"Prints the RoCE frames of a capture file (pcap, pcapng; - is standard input),\n"
	"one per line.\n"
	"\n"
	"  -s, --summary  at the end, what went to each queue pair\n"
	"  -q, --quiet    only frames that are malformed, cut or have a bad ICRC\n"
	"  -c, --check    exit with 1 when there is such a frame, or no RoCE frame at all\n"
	"  -h, --help     this text\n"
	"\n"
	"Live: tcpdump -i DEV -U -w - udp port 4791 | srn-decode -\n"
	"Where softrnic sends runs of packets as one, split them before they are\n"
	"captured: ethtool -K DEV tx-gso-list off\n";

struct error : std::runtime_error {
	using runtime_error::runtime_error;
};

struct options {
	bool summary = false, quiet = false, check = false;
	std::string file;

	std::string name() const
	{
		return file == "-" ? "standard input" : file;
	}
};

struct totals {
	uint64_t roce = 0, other = 0, bad = 0, malformed = 0, cut = 0;
};

volatile std::sig_atomic_t interrupted;

/* A read that waits shall end, so without SA_RESTART: what came is summed up. */
void stop_at_sigint()
{
	struct sigaction act = {};

	act.sa_handler = [](int) { interrupted = 1; };
	act.sa_flags = static_cast<int>(SA_RESETHAND);
	sigaction(SIGINT, &act, nullptr);
}

options parse(int argc, char **argv)
{
	static const option longs[] = {
		{"summary", no_argument, nullptr, 's'},
		{"quiet", no_argument, nullptr, 'q'},
		{"check", no_argument, nullptr, 'c'},
		{"help", no_argument, nullptr, 'h'},
		{},
	};
	options o;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "sqch", longs, nullptr)) != -1) {
		switch (c) {
		case 's':
			o.summary = true;
			break;
		case 'q':
			o.quiet = true;
			break;
		case 'c':
			o.check = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			throw error(format("unknown option '%s'; see srn-decode --help",
					   argv[optind - 1]));
		}
	}
	if (argc - optind != 1)
		throw error("give one capture file, or - for standard input; see srn-decode --help");
	o.file = argv[optind];
	return o;
}

using capture = std::unique_ptr<pcap_t, decltype([](pcap_t *p) { pcap_close(p); })>;

capture open_capture(const options &o)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	capture c(pcap_open_offline_with_tstamp_precision(o.file.c_str(),
							  PCAP_TSTAMP_PRECISION_NANO, why));

	if (!c) {
		const std::string text = why;

		/* for some faults libpcap names the file, for some it does not */
		throw error(text.starts_with(o.file + ":") ? text : o.name() + ": " + text);
	}

	const int link = pcap_datalink(c.get());

	if (!link_known(link)) {
		const char *name = pcap_datalink_val_to_name(link);

		throw error(o.name() + format(": frames of link type %s (%d) are not known here",
					      name ? name : "?", link));
	}
	return c;
}

/* Returns what ended it too early, if anything did. */
std::string read_all(pcap_t *cap, const options &o, totals &sum, flows &per_qp)
{
	const int link = pcap_datalink(cap);
	pcap_pkthdr *hdr;
	const u_char *data;
	int rc = 0;

	while (!interrupted && (rc = pcap_next_ex(cap, &hdr, &data)) == 1) {
		const auto f = dissect(link, view(data, hdr->caplen), hdr->len);

		if (!f) {
			sum.other++;
			continue;
		}
		sum.roce++;
		sum.bad += f->icrc == crc::bad;
		sum.malformed += !f->faults.empty();
		sum.cut += f->cut;
		if (o.summary)
			per_qp.add(*f);
		if (!o.quiet || f->icrc == crc::bad || !f->faults.empty() || f->cut)
			printf("%s %s\n", time_text(hdr->ts.tv_sec, hdr->ts.tv_usec).c_str(),
			       frame_text(*f).c_str());
	}
	return rc == PCAP_ERROR && !interrupted ? pcap_geterr(cap) : "";
}

int run(const options &o)
{
	totals sum;
	flows per_qp;

	if (o.file == "-") {
		/* someone may be watching */
		setvbuf(stdout, nullptr, _IOLBF, 0);
		stop_at_sigint();
	}

	const capture cap = open_capture(o);
	const std::string broken = read_all(cap.get(), o, sum, per_qp);

	if (o.summary)
		per_qp.print(stdout);
	if (o.summary || o.check)
		printf("%" PRIu64 " RoCE frames, %" PRIu64 " others; %" PRIu64 " bad ICRC, %" PRIu64
		       " malformed, %" PRIu64 " cut\n",
		       sum.roce, sum.other, sum.bad, sum.malformed, sum.cut);
	if (fflush(stdout) || ferror(stdout))
		throw error(format("cannot write: %s", strerror(errno)));
	if (!broken.empty())
		throw error(o.name() + ": " + broken);
	return o.check && (!sum.roce || sum.bad || sum.malformed || sum.cut);
}

} /* namespace */

int main(int argc, char **argv)
try {
	return run(parse(argc, argv));
} catch (const std::exception &e) {
	fflush(stdout);
	fprintf(stderr, "srn-decode: error: %s\n", e.what());
	return 2;
}
