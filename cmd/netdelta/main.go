// Command netdelta measures what a container network costs a workload, where the cost arises, and what to change.
package main

import (
	"os"

	"netdelta/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
