package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/kube"
)

// databaseServer is a MariaDB that somebody else runs, as strict as a node of a Galera cluster and with its numbers of rows. It says each second
// which tables there are.
const databaseServer = `d=/tmp/d && mkdir -p $d && cd $d
[ -e $d/data/mysql ] || mariadb-install-db --no-defaults --user=root --datadir=$d/data --auth-root-authentication-method=normal --skip-test-db >said 2>&1 || { cat said; exit 1; }
while sleep 1; do
	echo "tables: $(mariadb --no-defaults --socket=$d/socket --user=root --skip-column-names \
		--execute="select coalesce(group_concat(table_name), 'none') from information_schema.tables where table_schema = 'bench'" 2>&1)"
done &
exec mariadbd --no-defaults --user=root --datadir=$d/data --socket=$d/socket --bind-address=0.0.0.0 --skip-name-resolve --innodb-flush-log-at-trx-commit=0 \
	--innodb-force-primary-key=1 --auto-increment-increment=3 \
	--init-file=/secret/init.sql`

// password has what programs take for the ends of words, texts and lines. Its first word is nowhere else.
const (
	password   = secretWord + ` it's, \ #4$x%`
	secretWord = "S3cret"
)

// serveDatabase runs the database in a pod behind a Service "db" of the namespace. Its password is in a Secret.
func serveDatabase(t *testing.T, c *kube.Cluster) {
	t.Helper()
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{
		"init.sql": "create database if not exists bench;\ncreate user if not exists bench identified by '" + quoted + "';\ngrant all on bench.* to bench;\n",
	}}
	if _, err := c.API.Secrets(c.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	standing(t, c, 3306, 3306, corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Containers: []corev1.Container{{
			Name: "db", Image: programsImage, Command: []string{"sh", "-c", databaseServer},
			VolumeMounts: []corev1.VolumeMount{{Name: "secret", MountPath: "/secret"}, {Name: "data", MountPath: "/tmp"}},
			Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}},
			// A probe by TCP would be a client that breaks off, and have its node locked out.
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
				"mariadb", "--no-defaults", "--socket=/tmp/d/socket", "--user=root", "--execute=use bench",
			}}}},
		}},
	})
}

// awaitNoTables waits until the database says that there are no tables.
func awaitNoTables(t *testing.T, c *kube.Cluster) {
	t.Helper()
	o := corev1.PodLogOptions{TailLines: new(int64(1)), SinceTime: new(metav1.Now())}
	for deadline := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		said, err := c.API.REST.Get().Namespace(c.Namespace).Resource("pods").Name("db").SubResource("log").VersionedParams(&o, c.API.Parameters).DoRaw(t.Context())
		if err == nil && strings.TrimSpace(string(said)) == "tables: none" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v the database says %q, %v", patience, said, err)
		}
	}
}

// withDatabase runs the database, and returns what prepares a run against it with the password in a file of a folder: password or wrong.
func withDatabase(t *testing.T) (c *kube.Cluster, dir, target string, run func(file string, more ...string) *exec.Cmd) {
	t.Helper()
	c, flags := equipped(t, 2)
	serveDatabase(t, c)
	dir = t.TempDir()
	write(t, filepath.Join(dir, "password"), password+"\n")
	write(t, filepath.Join(dir, "wrong"), "Wr0ng "+password)
	target = "mysql://bench@db." + c.Namespace + ".svc/bench"
	return c, dir, target, func(file string, more ...string) *exec.Cmd {
		return longCommand(t, dir, append(append([]string{
			"run", "--quiet", "--builds", "1", "--rounds", "1", "--placement", "cross-node", "--target", target, "--target-password-file", file,
		}, flags...), more...)...)
	}
}

// TestMySQLTargetOnCluster: an external database is measured. Its password is to be seen nowhere, and netdelta's tables
// are gone afterwards.
func TestMySQLTargetOnCluster(t *testing.T) {
	t.Parallel()
	c, dir, target, run := withDatabase(t)
	e := finish(t, run("wrong", "--out", "refused")).want(t, statusFailed).says(t, "ERROR 1045", "see that --target-password-file", target)
	if strings.Count(e.stderr, "ERROR") != 1 || strings.Contains(e.stderr+e.stdout, "Wr0ng") {
		t.Errorf("it is said as\n%s%s", e.stderr, e.stdout)
	}

	cmd := begin(t, run("password", "--out", "run"))
	look := spy(t, c)
	e = await(t, cmd)
	look(fmt.Sprint(cmd.Args, e.stdout, e.stderr))
	e.want(t, statusDone).shows(t, "to "+target)
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		if tr.Failed != "" || tr.Errors > 0 || tr.Transactions == 0 {
			t.Errorf("%s: %d transactions, %d errors, %s", tr.ID(), tr.Transactions, tr.Errors, tr.Failed)
		}
	}
	// The Service leads to its pod, and no connection ends between.
	if run, err := result.Load(filepath.Join(dir, "run")); err != nil || !strings.Contains(strings.Join(run.Notes, "\n"), " on db, with ") {
		t.Errorf("the notes are %q, %v", run.Notes, err)
	}
	concealed(t, filepath.Join(dir, "run"))
	awaitNoTables(t, c)
}

// TestLostMySQLTargetOnCluster: netdelta's tables are gone also when the pod that held them was lost, and when the database itself was.
func TestLostMySQLTargetOnCluster(t *testing.T) {
	t.Parallel()
	c, dir, target, run := withDatabase(t)
	cmd := begin(t, run("password", "--networks", "pod", "--baseline", "pod", "--rounds", "2", "--out", "lost"))
	// Clients are made once the tables are there.
	pods := awaitPods(t, c, patience, func(all []corev1.Pod) bool {
		return len(all) > 1 && !slices.ContainsFunc(all, func(p corev1.Pod) bool { return !isReady(p) })
	})
	holder := slices.MinFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if err := c.API.Pods(c.Namespace).Delete(t.Context(), holder.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusDone).shows(t, "pod "+holder.Name+", from which target "+target+" was held, was lost")
	awaitNoTables(t, c)

	cmd = begin(t, run("password", "--networks", "pod", "--baseline", "pod", "--builds", "3", "--time-budget", "10m", "--out", "starved"))
	awaitWhole(t, filepath.Join(dir, "starved"), 1)
	starveDatabase(t, c)
	await(t, cmd)
	starvedInTheMiddle(t, trials(t, filepath.Join(dir, "starved")))
	awaitNoTables(t, c)
}

// starveDatabase has the database make an answer that is larger than its pod's memory.
func starveDatabase(t *testing.T, c *kube.Cluster) {
	t.Helper()
	kubectl := filepath.Join(os.Getenv("NETDELTA_KUBERNETES"), "kubectl")
	_, err := os.Stat(kubectl)
	require.Need(t, "kubectl of the cluster (NETDELTA_KUBERNETES)", err == nil)
	for _, statement := range []string{"set global max_allowed_packet = 1 << 30", "select length(repeat('x', 1000000000))"} {
		out, err := exec.Command(kubectl, "--kubeconfig", os.Getenv(require.KubeconfigVariable), "--namespace", c.Namespace, "exec", "db", "--",
			"mariadb", "--no-defaults", "--socket=/tmp/d/socket", "--user=root", "--execute="+statement).CombinedOutput()
		t.Logf("%s: %v: %s", statement, err, out)
	}
}

// starvedInTheMiddle checks that the database's end is named: at once, or, where the node told the cluster of it later, in the next build.
func starvedInTheMiddle(t *testing.T, all []result.Trial) {
	t.Helper()
	named, unnamed := 0, map[int]bool{}
	for _, tr := range all {
		switch {
		case strings.Contains(tr.Failed, "OOMKilled"):
			named++
		case tr.Failed != "":
			unnamed[tr.Build] = true
			t.Logf("%s failed: %s", tr.ID(), tr.Failed)
		}
	}
	if named == 0 || len(unnamed) > 1 {
		t.Errorf("the database was killed for want of memory; %d of %d trials name that, and others failed in %d builds", named, len(all), len(unnamed))
	}
}

func isReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// spy looks for the password where others could see it: in command lines and environments of all processes that this machine shows,
// including the nodes' processes, and in objects of the namespace. It looks until end is called; more is further text to search.
func spy(t *testing.T, c *kube.Cluster) (end func(more string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	found, loads := map[string]bool{}, 0
	see := func(where string, text []byte) {
		if bytes.Contains(text, []byte(secretWord)) {
			found[where] = true
		}
	}
	wg.Go(func() {
		for look := 0; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			files, _ := filepath.Glob("/proc/[0-9]*/[ce][mn][dv]*") // cmdline, environ
			for _, name := range files {
				text, _ := os.ReadFile(name) // it may have ended
				see(name, text)
				if bytes.HasPrefix(text, []byte("/usr/bin/sysbench\x00")) {
					loads++
				}
			}
			if look++; look%4 != 0 { // objects are there for longer than processes, and asking for them is work
				continue
			}
			for what, list := range objects(ctx, c) {
				see(what, list)
			}
		}
	})
	return func(more string) {
		t.Helper()
		cancel()
		wg.Wait()
		see("what was said", []byte(more))
		for where := range found {
			t.Errorf("the password is in %s", where)
		}
		if own, err := supervisor.Own(); err == nil && own.Kubeconfig() == os.Getenv(require.KubeconfigVariable) && loads == 0 {
			t.Error("no process of a pod was looked at")
		}
	}
}

// objects are those that a run may make, as the API server has them, but for the Secret of the database.
func objects(ctx context.Context, c *kube.Cluster) map[string][]byte {
	all := map[string][]byte{}
	if pods, err := c.API.Pods(c.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
		all["a pod"], _ = json.Marshal(pods) // it was JSON
	}
	if maps, err := c.API.ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
		all["a ConfigMap"], _ = json.Marshal(maps)
	}
	if secrets, err := c.API.Secrets(c.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, s := range secrets.Items {
			for _, data := range s.Data {
				if s.Name != "db" {
					all["Secret "+s.Name] = append(all["Secret "+s.Name], data...)
				}
			}
		}
	}
	return all
}

// concealed looks for the password in all files of a run folder.
func concealed(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.Contains(read(t, name), secretWord) {
			t.Errorf("%s has the password", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
