/* The table of commands. */
#include <string.h>

#include "command.h"
#include "suggest.h"

/* What all commands about a store take. */
#define STORE_HELP                                                                 \
	"      --store S     sqlite:PATH or postgresql://HOST/DATABASE, instead\n" \
	"                    of $BATON_STORE or of one of this user's own\n"       \
	"  -v, --verbose     say on standard error which store is used\n"

/* What all commands about a claim take. */
#define CLAIM_HELP                                                                     \
	"The claim is that of BATON_CLAIM and BATON_TOKEN, as 'baton claim --shell'\n" \
	"writes them, or is given. The status is 1 if it is not held any more.\n"

/* What all commands about a broker take. */
#define BROKER_HELP                                                   \
	"      --broker DIR  the folder of its sockets, instead of\n" \
	"                    $BATON_BROKER or of baton in $XDG_RUNTIME_DIR\n"

const struct command commands[] = {
	{
		.name = "demo",
		.usage = "",
		.summary = "show what Baton does, live",
		.text = "Three runners share 2000 jobs in 50 lanes of a store that is gone\n"
			"afterwards. One is killed, another one frozen for longer than its ttl:\n"
			"their lanes go on elsewhere, and late writes are refused. It takes about\n"
			"20 seconds. A witness, who sees only effects and fences, says in\n"
			"the end whether every job was done exactly once, every lane in order,\n"
			"and never by two at a time. The status is 1 if that is not so.\n",
		.run = cmd_demo,
	},
	{
		.name = "put",
		.usage = "QUEUE [OPTION]... PAYLOAD|-\n"
			 "       baton put QUEUE [OPTION]... --file FILE",
		.summary = "add a job to a queue",
		.text = "Stores the job, makes the queue if it is not there, and prints the id of\n"
			"the job. '-' reads the payload from standard input.\n"
			"\n"
			"      --lane L        in that lane, behind what is there\n"
			"      --concurrency-key K\n"
			"                      at most key-limit jobs of a key run at once; given\n"
			"                      several times, the job has all these keys\n"
			"      --delay D       not before D has passed, such as 90s or 5min\n"
			"      --at T          not before T: 2026-02-28T09:05:00Z or @1772269500\n"
			"      --priority N    0 to 9, higher first, between the lanes of a queue\n"
			"      --join[=GROUP]  may be claimed together with those behind it\n"
			"      --command       is claimed alone, and overtaken by nothing\n"
			"      --after-commit  is given only to a lane that is idle\n"
			"      --idempotency-key S\n"
			"                      put it once, however often this is repeated\n"
			"      --attempts N    how often it may be tried\n"
			"      --file FILE     a job for each line, a JSON object such as\n"
			"                      {\"payload\": \"text\", \"lane\": \"a\"};\n"
			"                      '-' is standard input\n"
			"      --atomic        all of the lines, or none, 10,000 at most\n"
			"      --check-first   none of the lines if one of them is wrong\n"
			"      --json          write what became of it as JSON\n" STORE_HELP "\n"
			"Example: baton put mail --lane ada@example.com 'Hello'\n"
			"baton-put(1) says more.\n",
		.run = cmd_put,
	},
	{
		.name = "work",
		.usage = "QUEUE... [OPTION]... -- COMMAND [ARGUMENT]...\n"
			 "       baton work --singleton NAME [OPTION]... -- COMMAND [ARGUMENT]...",
		.summary = "execute a command for each job of queues, or one of a kind",
		.text = "Runs until it is asked to end (SIGTERM, SIGINT). Several may share the\n"
			"queues: each job is given to one of them, and a lane is never in two.\n"
			"The payload is on the command's standard input; what it writes to its\n"
			"standard output is the result. Status 0 completes the job, 65 is dead at\n"
			"once, anything else fails and is tried again later.\n"
			"\n"
			"With --singleton there are no jobs: the command runs on one of all those\n"
			"that offer that name, and on another one when that ends. What schedules\n"
			"have due is put by one of those that run.\n"
			"\n"
			"  -j, --jobs N       so many commands at once; 4 for each processor\n"
			"                     unless it is said\n"
			"      --timeout D    a command that takes longer is ended\n"
			"      --grace D      from SIGTERM to SIGKILL; 5s unless it is said\n"
			"      --join M       so many jobs for a command, where they may join\n"
			"      --lines        payloads as lines of JSON, as several always are;\n"
			"                     --json is the same\n"
			"      --stream       the command lives on, and gets one claim after the\n"
			"                     other as lines of JSON on its descriptor 3\n"
			"      --in-flight N  with --stream, so many claims at once for each;\n"
			"                     1 unless it is said\n"
			"      --conn         also for each connection for a lane of the queues\n"
			"                     that a broker hands over, as descriptor 3; with\n"
			"                     --stream beside a line on it\n"
			"      --conn-max N   so many connections at once; 256\n"
			"      --broker DIR   with --conn: the folder of the broker's sockets\n"
			"      --once         one job, or several joined, and no more\n"
			"      --until-empty  end when nothing is ready any more\n"
			"      --drain D      how long commands may go on when it is to end;\n"
			"                     15s unless it is said\n"
			"      --name NAME    of this runner; host and process unless it is said\n"
			"      --replace      take the place of a runner with that name\n"
			"      --singleton NAME  the command has one instance, of that name\n"
			"      --hook STRING  for the shell, when it detaches or attaches again,\n"
			"                     with BATON_STATE and BATON_REASON\n"
			"      --weight N     its share of the work, 0 to 1000; else 1\n"
			"      --ttl D        how long others wait for a runner that is silent\n"
			"      --beat D       how often it says that it lives; 1s without it\n"
			"      --margin D     how long before its ttl is over it stops by itself;\n"
			"                     ttl is at least 3 beats and the margin\n" STORE_HELP
			"\n"
			"Example: baton work mail -j 8 --timeout 5min -- ./send\n"
			"baton-work(1) says more.\n",
		.run = cmd_work,
	},
	{
		.name = "claim",
		.usage = "QUEUE [OPTION]...",
		.summary = "take work from a queue",
		.text = "Prints claim, token and payload of the next job. It is nobody else's\n"
			"until it is ended (complete, fail, abandon, snooze) or its time is over.\n"
			"The status is 75 if there is nothing.\n"
			"\n"
			"  -n, --claims N    so many claims, each of its own lane\n"
			"      --max M       so many jobs in each, where they may be joined\n"
			"      --ttl D       for how long; 30s unless it is said\n"
			"      --wait D      wait for work, at most so long\n"
			"      --owner NAME  what others are told about who has it\n"
			"      --shell       write variables for a shell: BATON_CLAIM,\n"
			"                    BATON_TOKEN, BATON_FENCE, BATON_JOB,\n"
			"                    BATON_ATTEMPT, BATON_PAYLOAD and others\n"
			"      --json        one JSON object per claim\n" STORE_HELP "\n"
			"Example: while eval \"$(baton claim mail --shell --wait 1h)\"; do\n"
			"           if send \"$BATON_PAYLOAD\"; then baton complete\n"
			"           else baton fail --error \"send gave status $?\"; fi\n"
			"         done\n"
			"baton-claim(1) says more.\n",
		.run = cmd_claim,
	},
	{
		.name = "renew",
		.usage = "[--ttl D] [OPTION]... [CLAIM [TOKEN]]",
		.summary = "make a claim last longer",
		.text = CLAIM_HELP
		"It prints until when the claim lasts, and 'cancel' behind it if somebody has\n"
		"asked that the work be stopped.\n"
		"\n"
		"      --ttl D       for so long from now; 30s unless it is said\n"
		"      --json        one JSON object\n" STORE_HELP "\n"
		"Example: baton renew --ttl 5min\n",
		.run = cmd_renew,
	},
	{
		.name = "complete",
		.usage = "[--result R|-] [OPTION]... [CLAIM [TOKEN]]",
		.summary = "say that the work of a claim is done",
		.text = CLAIM_HELP
		"\n"
		"      --result R    what came of it, kept if the queue keeps results; '-' reads\n"
		"                    it from standard input\n"
		"      --json        one JSON object\n" STORE_HELP "\n"
		"Example: baton complete --result 'sent at noon'\n",
		.run = cmd_complete,
	},
	{
		.name = "fail",
		.usage = "--error E [--retry-in D | --dead] [OPTION]... [CLAIM [TOKEN]]",
		.summary = "say that the work of a claim has failed",
		.text = CLAIM_HELP
		"It is tried again later, until it has no attempts left; then it is dead. It\n"
		"prints which, and when it is ready again.\n"
		"\n"
		"      --error E     why; whoever looks at the job sees it\n"
		"      --retry-in D  try again after D, instead of what the queue's policy says\n"
		"      --dead        do not try again\n"
		"      --json        one JSON object\n" STORE_HELP "\n"
		"Example: baton fail --error 'no route to host' --retry-in 10min\n",
		.run = cmd_fail,
	},
	{
		.name = "abandon",
		.usage = "[OPTION]... [CLAIM [TOKEN]]",
		.summary = "give the work of a claim back",
		.text = CLAIM_HELP
		"The work is ready again at its old place, and no attempt is counted.\n"
		"\n"
		"      --json        one JSON object\n" STORE_HELP "\n"
		"Example: baton abandon\n",
		.run = cmd_abandon,
	},
	{
		.name = "snooze",
		.usage = "D [OPTION]... [CLAIM [TOKEN]]",
		.summary = "give the work of a claim back for later",
		.text = CLAIM_HELP
		"The work is ready again after D, at its old place, and no attempt is counted.\n"
		"\n"
		"      --json        one JSON object\n" STORE_HELP "\n"
		"Example: baton snooze 10min\n",
		.run = cmd_snooze,
	},
	{
		.name = "cancel",
		.usage = "[OPTION]... ID...\n"
			 "       baton cancel --queue Q [OPTION]...",
		.summary = "remove jobs",
		.text = "For each job it prints what became of it: removed; told, if it is\n"
			"claimed: its holder learns of it when it renews, a runner in about a\n"
			"second, which ends the handler, and the job does not come back; or\n"
			"missing, and the status is 1.\n"
			"\n"
			"      --queue Q     all jobs of that queue, or those of them that are as\n"
			"                    the others say\n"
			"      --lane L      in that lane\n"
			"      --state S     in that state, as in 'baton ls'\n"
			"      --error P     that failed with such an error; * and ? in P are any\n"
			"      --json        one JSON object per job\n" STORE_HELP "\n"
			"Example: baton cancel 17 18\n",
		.run = cmd_cancel,
	},
	{
		.name = "retry",
		.usage = "[OPTION]... ID...\n"
			 "       baton retry --queue Q [OPTION]...",
		.summary = "bring dead jobs back",
		.text = "A dead job is ready again, at the end of its lane, with no attempts\n"
			"counted; one that waits for its next attempt or its time is ready now.\n"
			"For each job it prints what became of it: ready; unchanged, as it was\n"
			"not waiting; or missing. The status is 1 unless all are ready.\n"
			"\n"
			"      --queue Q     all dead jobs of that queue, or those of them that\n"
			"                    are as the others say\n"
			"      --lane L      in that lane\n"
			"      --state S     in that state, such as retry, instead of dead\n"
			"      --error P     that failed with such an error; * and ? in P are any\n"
			"      --json        one JSON object per job\n" STORE_HELP "\n"
			"Example: baton retry 17\n",
		.run = cmd_retry,
	},
	{
		.name = "ls",
		.usage = "[OPTION]... [QUEUE [LANE]]",
		.summary = "list jobs",
		.text = "In the order in which they were put. The status is 1 if there is no\n"
			"such queue.\n"
			"\n"
			"      --state S     only those that are ready, delayed, retry,\n"
			"                    claimed, dead, done or skipped\n"
			"      --limit N     at most N of them; 100 unless it is said\n"
			"      --after SEQ   those behind the one with that seq\n"
			"      --by-error    count the dead ones by their error instead\n"
			"      --json        one JSON object per job, or error\n" STORE_HELP "\n"
			"Example: baton ls mail --state dead\n",
		.run = cmd_ls,
	},
	{
		.name = "show",
		.usage = "[OPTION]... ID",
		.summary = "show all about a job",
		.text = "The status is 1 if there is no such job.\n"
			"\n"
			"      --payload     write the bytes of its payload, and nothing else\n"
			"      --json        one JSON object\n" STORE_HELP "\n"
			"Example: baton show 17 --payload > payload.bin\n",
		.run = cmd_show,
	},
	{
		.name = "why",
		.usage = "[OPTION]... ID\n"
			 "       baton why --queue QUEUE [--lane LANE]",
		.summary = "say why a job, a lane or a queue stands still",
		.text = "One sentence; of a queue also one that counts what is in it, before what\n"
			"keeps its first job. The status is 1 if there is no such job or queue.\n"
			"\n"
			"      --queue Q     of this queue\n"
			"      --lane L      of this lane of it\n"
			"      --json        one JSON object\n" STORE_HELP "\n"
			"Example: baton why --queue mail --lane ada\n",
		.run = cmd_why,
	},
	{
		.name = "queue",
		.usage = "[list] [OPTION]...\n"
			 "       baton queue show|pause|resume QUEUE\n"
			 "       baton queue set QUEUE KEY=VALUE...",
		.summary = "show, change, pause and resume queues",
		.text = "'list' counts what is in each queue, 'show' adds the policy of one,\n"
			"'set' changes it and makes the queue if it is not there. From a queue\n"
			"that is paused nothing can be claimed.\n"
			"\n"
			"The keys are mode, shards, payload-max, waiting-max, attempts, backoff,\n"
			"base, cap, lane-attempts, lane-backoff, lane-base, lane-cap, on-retry,\n"
			"on-dead, dedupe, keep, key-limit, hold-on-retry, on-conflict,\n"
			"key-waiting-max, key-fair, key-rate, key-ttl, key-scope and key-class;\n"
			"queues of one class have their concurrency keys in common.\n"
			"baton-queue(1) explains them.\n"
			"\n"
			"      --json        one JSON object per queue\n" STORE_HELP "\n"
			"Example: baton queue set mail attempts=3 keep=1d\n",
		.run = cmd_queue,
	},
	{
		.name = "schedule",
		.usage = "[list] [OPTION]...\n"
			 "       baton schedule show|remove|pause|resume|run NAME\n"
			 "       baton schedule next NAME [-n N]\n"
			 "       baton schedule set NAME CRON --queue Q [OPTION]... [PAYLOAD|-]\n"
			 "       baton schedule tick",
		.summary = "put jobs again and again, at certain times",
		.text = "'set' makes a schedule, or replaces the one of that name; 'show' adds\n"
			"the next ticks of one, and 'next' prints those alone, as the clocks of\n"
			"its zone show them. One that is told to 'pause' does not tick until it\n"
			"is told to 'resume'. 'run' puts a job of it now, and prints its id.\n"
			"\n"
			"Any 'baton work' puts what is due. 'tick' does so without one, and\n"
			"prints how many jobs that were; each tick is put once, however many\n"
			"are at it.\n"
			"\n"
			"CRON is one word, in quotes: minute, hour, day of the month, month and\n"
			"day of the week, with the seconds before them if there are six; or\n"
			"@hourly, @daily, @weekly, @monthly or @yearly.\n"
			"\n"
			"      --queue Q     where its jobs go\n"
			"      --zone Z      whose clock, such as Europe/Berlin; UTC unless it is\n"
			"                    said\n"
			"      --lane L      in that lane\n"
			"      --priority N  0 to 9, higher first, between the lanes of a queue\n"
			"      --missed M    what becomes of ticks that nobody put in time: once\n"
			"                    (the last for all of them), all, or skip\n"
			"  -n, --count N     so many moments, for next; 5 unless it is said\n"
			"      --json        one JSON object per schedule\n" STORE_HELP "\n"
			"Example: baton schedule set report '0 6 * * MON-FRI' --queue mail weekly\n"
			"baton-schedule(1) says more.\n",
		.run = cmd_schedule,
	},
	{
		.name = "runner",
		.usage = "[list] [OPTION]...\n"
			 "       baton runner detach|attach|drain NAME",
		.summary = "show runners, detach, attach and drain them",
		.text = "'list' shows who runs jobs, and how many shards of which queues each\n"
			"has. A runner that is told to 'detach' stops what it runs and owns\n"
			"nothing, until it is told to 'attach'; one that is told to 'drain'\n"
			"finishes what it has begun, takes nothing new and gives its shards\n"
			"away. STATE is what it says that it is at, WISH what it was told to do.\n"
			"The status is 1 if there is no such runner.\n"
			"\n"
			"      --json        one JSON object per runner, with its metrics\n"
			"      --metrics     those of all, as Prometheus reads them\n" STORE_HELP
			"\n"
			"Example: baton runner drain web-3\n"
			"baton-runner(1) says more.\n",
		.run = cmd_runner,
	},
	{
		.name = "where",
		.usage = "QUEUE LANE [OPTION]...",
		.summary = "say which runner owns a lane",
		.text = "Prints the runner, its host and its endpoint, the shard that the lane\n"
			"belongs to and the fence of its owner. The status is 1 if nobody owns\n"
			"it, or there is no such queue.\n"
			"\n"
			"      --json        one JSON object\n" STORE_HELP "\n"
			"Example: baton where mail ada@example.com\n",
		.run = cmd_where,
	},
	{
		.name = "top",
		.usage = "[OPTION]...",
		.summary = "show how a store stands, all the time",
		.text = "Queues, runners, which runner has which shards, the keys that hold\n"
			"others up, and the jobs that died last, on the whole terminal. Tab goes\n"
			"from the queues to the dead jobs and back, Up and Down choose one;\n"
			"p pauses or resumes a queue, r brings a dead job back, c cancels it;\n"
			"q ends it.\n"
			"\n"
			"      --once        print it once, as tables\n"
			"      --interval D  look again after that time, 1s if not given\n"
			"      --json        with --once: one JSON object per queue, runner, key\n"
			"                    and dead job\n" STORE_HELP "\n"
			"Example: baton top\n",
		.run = cmd_top,
	},
	{
		.name = "backup",
		.usage = "[OPTION]... FILE",
		.summary = "copy a store while it is in use",
		.text = "FILE is made, complete and as the store was at one moment, or is not\n"
			"there at all. Used as a store, its fences are higher than any that were\n"
			"handed out.\n"
			"\n"
			"      --json        one JSON object\n" STORE_HELP "\n"
			"Example: baton backup monday.db\n",
		.run = cmd_backup,
	},
	{
		.name = "check",
		.usage = "[OPTION]...",
		.summary = "look whether everything in a store fits together",
		.text = "It prints a sentence for each fault; the status is 1 if there is one.\n"
			"\n"
			"      --json        one JSON object per fault\n" STORE_HELP "\n"
			"Example: baton check --store sqlite:monday.db\n",
		.run = cmd_check,
	},
	{
		.name = "migrate",
		.usage = "[OPTION]...",
		.summary = "make or renew the tables of a store in PostgreSQL",
		.text = "Makes the schema \"baton\" in the database, or brings its tables to this\n"
			"version of baton. Other commands do the same when they need it and may.\n"
			"\n"
			"      --print       write the statements, and change nothing\n" STORE_HELP
			"\n"
			"Example: baton migrate --store postgresql://localhost/jobs\n",
		.run = cmd_migrate,
	},
	{
		.name = "lock",
		.usage = "NAME [OPTION]... [--] COMMAND [ARGUMENT]...\n"
			 "       baton lock NAME [OPTION]... -c STRING",
		.summary = "run a command while it holds a name",
		.text = "One command at a time runs under a name; the others wait, or yield and\n"
			"are told who holds it. BATON_FENCE is a number that only ever grows.\n"
			"\n"
			"  -n, --nonblock      yield at once if somebody holds it\n"
			"  -w, --wait D        yield after D, such as 90s or 5min\n"
			"  -E, --conflict-exit-code CODE\n"
			"                      the status when it yields, instead of 75\n"
			"  -c, --command STRING\n"
			"                      run STRING with /bin/sh\n"
			"      --ttl D         lose it when this host does not renew it for D\n"
			"      --at-least D    keep it for D from the start, in the background\n"
			"      --fleet PATH    hold it among those who use this file\n"
			"      --cluster       hold it in a store instead, by a lease of 30s, or\n"
			"                      of --ttl; if that cannot be renewed, the command\n"
			"                      is ended before it is over\n"
			"      --store S       sqlite:PATH or postgresql://HOST/DATABASE, instead\n"
			"                      of $BATON_STORE or of one of this user's own\n"
			"  -v, --verbose       say when it is held\n"
			"\n"
			"The status is that of the command; 75 it yielded, 76 the name was lost.\n"
			"baton-lock(1) says more.\n",
		.run = cmd_lock,
	},
	{
		.name = "holders",
		.usage = "[--fleet PATH] [--json] [-v] [NAMESPACE[/LABEL]]\n"
			 "       baton holders --cluster [--store S] [--json] [-v] "
			 "[NAMESPACE[/LABEL]]",
		.summary = "show who holds what on this host, or in a store",
		.text = "Lists what the processes of a fleet hold, by namespace and label: who\n"
			"holds it, under which fence, since when and until when. Without such a\n"
			"fleet nobody holds anything. It changes nothing.\n"
			"\n"
			"      --fleet PATH  the fleet's file\n"
			"      --cluster     what is held in a store instead, by leases\n"
			"      --store S     sqlite:PATH or postgresql://HOST/DATABASE, instead\n"
			"                    of $BATON_STORE or of one of this user's own\n"
			"      --json        one JSON object per line\n"
			"  -v, --verbose     say on standard error which fleet or store is used\n",
		.run = cmd_holders,
	},
	{
		.name = "watch",
		.usage = "[--fleet PATH] [--json] [-v] [NAMESPACE[/LABEL]]",
		.summary = "show what happens to claims, as it happens",
		.text = "Begins with who holds what, and then writes a line whenever something is\n"
			"claimed or released, has expired, was forced away, or its holder died.\n"
			"It ends by a signal, when nobody reads it any more, or, with status 69,\n"
			"when the fleet's file is removed. It changes nothing.\n"
			"\n"
			"      --fleet PATH  the fleet's file\n"
			"      --json        one JSON object per line\n"
			"  -v, --verbose     say on standard error which fleet is used\n",
		.run = cmd_watch,
	},
	{
		.name = "force-release",
		.usage = "[--fleet PATH] [-v] NAME\n"
			 "       baton force-release --cluster [--store S] [-v] NAME",
		.summary = "take a name away from whoever holds it",
		.text = "NAME is NAMESPACE/LABEL, or a label in the namespace 'lock'. It prints\n"
			"who held it. The holder goes on until it looks: its fence is what keeps\n"
			"it from doing harm. The status is 1 if nobody held it.\n"
			"\n"
			"      --fleet PATH  the fleet's file\n"
			"      --cluster     what is held in a store instead, by a lease\n"
			"      --store S     sqlite:PATH or postgresql://HOST/DATABASE, instead\n"
			"                    of $BATON_STORE or of one of this user's own\n"
			"  -v, --verbose     say on standard error which fleet or store is used\n",
		.run = cmd_force_release,
	},
	{
		.name = "fleet",
		.usage = "[--fleet PATH] [-v] [--json | --reset | --create [LIMIT]... [--group]]",
		.summary = "show, make or remove the fleet of this host's processes",
		.text = "Shows the fleet's file, its members, and how full it is.\n"
			"\n"
			"      --create      make it, unless it is there with these limits\n"
			"      --members N   how many processes it can have\n"
			"      --subjects N  how many subjects can be held\n"
			"      --waiters N   how many threads can wait in line\n"
			"      --events N    how many events each member keeps; a power of 2\n"
			"      --wakeups N   how many wake-ups are kept; a power of 2\n"
			"      --group       make it for the group of its folder, with mode 660\n"
			"      --reset       remove it; refused while a member lives\n"
			"      --json        show it as one JSON object\n"
			"      --fleet PATH  its file, instead of $BATON_FLEET, of\n"
			"                    /run/baton/fleet, or of one of this user's own\n"
			"  -v, --verbose     say on standard error which fleet is used\n",
		.run = cmd_fleet,
	},
	{
		.name = "serve",
		.usage = "[OPTION]...",
		.summary = "run the broker that hands connections to their backends",
		.text = "Clients ask it for a service ('baton connect'), and it passes their open\n"
			"connection to the backend of that service, or tells them where to\n"
			"reconnect. SIGTERM ends it, after what is on its way.\n"
			"\n"
			"      --ack-timeout D    for a backend to take a connection; 5s\n"
			"      --clients N        clients that wait for an answer at once; beyond\n"
			"                         that they are told to come again, and those of\n"
			"                         --listen see the end of the connection; 65536\n"
			"      --detach           with --upgrade: return when it is done\n"
			"      --hello-timeout D  for a client to say what it wants; 30s\n"
			"      --listen ADDRESS:PORT=SERVICE[@NAME]\n"
			"                         take clients of TCP for the service; with a\n"
			"                         NAME those who ask for it in TLS or HTTP\n"
			"      --park D           how long clients wait for a service that has no\n"
			"                         backend now; 5s\n"
			"      --pending N        connections on their way at once; beyond that\n"
			"                         clients reconnect; 1024\n"
			"      --rate N/D         clients of one user: N at once, and others one\n"
			"                         by one, evenly over the time D; beyond that\n"
			"                         they are told when to come again\n"
			"      --services DIR     start what the files NAME.conf there define,\n"
			"                         when a client wants it\n"
			"      --store S     whose runners own the lanes\n"
			"      --upgrade     take the place of the broker that runs, with all\n"
			"                    that it has\n" BROKER_HELP
			"  -v, --verbose     log more on standard error\n"
			"\n"
			"baton-serve(1) says more.\n",
		.run = cmd_serve,
	},
	{
		.name = "connect",
		.usage = "SERVICE [OPTION]...\n"
			 "       baton connect [SERVICE] --queue Q --lane L [OPTION]...",
		.summary = "connect to whoever owns a service, or a lane",
		.text = "Carries standard input to the backend of the service, and what it\n"
			"answers to standard output, until the backend ends the connection.\n"
			"\n"
			"      --queue Q     with --lane: the backend of the runner that owns it\n"
			"      --lane L      that lane of the queue\n"
			"      --wait D      for the connection; 15s unless it is said\n"
			"      --want V      refuse a service of another version, if it has one\n"
			"      --no-handoff  connect to the backend's own endpoint\n" BROKER_HELP
			"  -v, --verbose     say on standard error how it was connected\n"
			"\n"
			"Example: echo hello | baton connect chat\n",
		.run = cmd_connect,
	},
	{
		.name = "backend",
		.usage = "SERVICE [OPTION]... -- COMMAND [ARGUMENT]...\n"
			 "       baton backend SERVICE [OPTION]... --endpoint E",
		.summary = "run a command for each connection of a service",
		.text = "The connection is the command's standard input and output. SIGTERM ends\n"
			"it, after the commands that run. BATON_SERVICE, BATON_CONNECTION,\n"
			"BATON_CLIENT_PID and BATON_CLIENT_UID say whose it is.\n"
			"\n"
			"      --fd3         it is descriptor 3 instead, with LISTEN_FDS, as\n"
			"                    systemd passes one\n"
			"      --max N       so many commands at once, others wait; 128\n"
			"      --endpoint E  no command: clients connect to a server that is at\n"
			"                    the path of a socket or tcp:HOST:PORT\n" BROKER_HELP
			"\n"
			"Example: baton backend date -- date\n",
		.run = cmd_backend,
	},
	{
		.name = "services",
		.usage = "[OPTION]...",
		.summary = "show the services of a broker, and their backends",
		.text = "Of several backends of a service that of the highest GENERATION gets\n"
			"its connections; CURRENT says so. WAY is how they get there: by handoff,\n"
			"repeatable (without waiting for a grant), by reconnecting, or adopted:\n"
			"somebody else speaks for it; stdio or fd3: by a command for each.\n"
			"Services that the broker starts itself have a STATE: down, starting,\n"
			"up, given up.\n"
			"\n"
			"      --json        one JSON object per backend\n" BROKER_HELP,
		.run = cmd_services,
	},
	{
		.name = "handoff",
		.usage = "[OPTION]...",
		.summary = "show what a broker has done so far",
		.text = "Counts clients, connections on their way, offered and granted, and why\n"
			"others had to reconnect; how long it took from offer to grant; and which\n"
			"descriptors it keeps for backends.\n"
			"\n"
			"      --json        one JSON object\n" BROKER_HELP,
		.run = cmd_handoff,
	},
	{
		.name = "help",
		.usage = "[COMMAND]",
		.summary = "explain a command, or list them all",
		.text = "Without a command it lists all of them.\n",
		.run = cmd_help,
	},
};

const size_t commands_count = sizeof commands / sizeof commands[0];

const struct command *command_find(const char *name)
{
	struct suggestion meant = {.typed = name};
	for (size_t i = 0; i < commands_count; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
		suggestion_consider(&meant, commands[i].name);
	}
	char shown[SHOWN_MAX];
	show(name, shown);
	if (meant.nearest)
		complain("unknown command '%s'; did you mean '%s'?", shown, meant.nearest);
	else
		complain("unknown command '%s'; 'baton --help' lists them", shown);
	return NULL;
}
