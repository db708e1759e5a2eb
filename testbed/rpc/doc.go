// Package rpc is how netdelta speaks to the parts of it that run elsewhere: agents in pods, node agents, nodes on other machines, guests
// and keepers of labs. All it needs is a stream of bytes each way: pipes of a process, a serial port, a socket.
//
// Requests and answers are JSON: a Request names an operation, an Answer has its value or its error. Client and Serve exchange them a
// line each, which costs a few microseconds. Conn carries many streams over one connection, where programs are started at the other end:
// each stream begins with a Request, and goes on with its Answer or with messages of what a program writes.
//
// Whatever is spoken to introduces itself with a Greeting first, and Greeting.Check refuses one of another version.
package rpc
