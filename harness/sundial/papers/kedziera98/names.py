# SPDX-License-Identifier: Apache-2.0
"""What the runs of kedziera98 are called, in files and tables, and its sizes in bytes."""

ATM, LINUX, SWAPPED = "fig1-atm", "fig1-linux-sun", "fig1-linux-sun-swapped"
TCP, UDP, ETHERNET = "fig3-tcp", "fig3-udp", "fig4-ethernet"
RAW_TCP, RAW_UDP, PCS = "raw-tcp", "raw-udp", "pc-pc"
STREAM_ATM, STREAM_LINUX, CONTROL = "iperf3-atm", "iperf3-linux-sun", "lane-control"

OF_FIGURES = (ATM, LINUX, SWAPPED, TCP, UDP, ETHERNET)
"""Curves of the paper's figures."""
PAIRS = ((RAW_TCP, TCP), (RAW_UDP, UDP))
"""Raw sockets, and what goes over them."""

GRID = 16
"""Between the paper's sizes."""
LAST = 8192
WINDOW = (1024, 1536)
"""Of figure 2, which is an enlargement of figure 1; the paper does not say of where."""
