// Command peertest is the peer of testbedtest as a program of its own.
package main

import (
	"os"

	"netdelta/testbed/testbedtest"
)

func main() { os.Exit(testbedtest.BePeer()) }
