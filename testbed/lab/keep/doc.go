// Package keep holds labs up in background processes, so that one may look into them from any shell, later. Each lab has a
// process of its own, the keeper, that holds its namespaces and answers on a Unix socket in a folder of the user. While it lives
// it holds a lock on a file there: a process that gets the lock knows that the lab is gone.
package keep
