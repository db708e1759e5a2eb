// Package rpc is how netdelta speaks to the parts of it that run elsewhere: agents in pods, node agents, nodes on other machines, guests
// and keepers of labs. All it needs is a stream of bytes each way: pipes of a process, a serial port, a socket.
//
// A Conn carries many streams over one connection. Each begins with a Request in JSON, an operation and its arguments, and goes on with
// its Answer, a value or an error, or with messages of what a program writes. A request and its answer are one write each. Client calls a
// process, with deadlines, and Serve answers it.
//
// Whatever is spoken to introduces itself with a Greeting first, and Greeting.Check refuses one of another version.
package rpc
