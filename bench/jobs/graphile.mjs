// Reads numbers from standard input, a line each, lives so many jobs, and answers with a line.
// Two processes work, each with a local queue and completions in batches, as its documentation
// recommends for throughput; this one adds the jobs, 1,000 in each call.
import { fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker';
import pg from 'pg';

const words = Object.fromEntries(process.argv[2].split(' ').map((word) => word.split('=')));
const where = { host: words.host, database: words.dbname, user: words.user, max: 12 };
const logger = new Logger(() => () => {});
const EACH = 1000;

function connect() {
    const pool = new pg.Pool(where);
    pool.on('error', (e) => { throw e; });
    pool.on('connect', (client) => client.on('error', (e) => { throw e; }));
    return pool;
}

if (process.argv[3] === 'worker') {
    let done = 0;
    setInterval(() => {
        if (done > 0) process.send(done);
        done = 0;
    }, 1);
    await run({
        pgPool: connect(),
        logger,
        noHandleSignals: true,
        taskList: { bench() {} },
        preset: { worker: {
            concurrentJobs: 24,
            maxPoolSize: 12,
            pollInterval: 100,
            localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
        } },
    }).then((runner) => runner.events.on('job:complete', () => { done++; }));
    process.on('disconnect', () => process.exit(0));
    process.send(0);
} else {
    const pool = connect();
    await runMigrations({ pgPool: pool, logger });
    let left = 0;
    let told;
    const utils = await makeWorkerUtils({ pgPool: pool, logger });
    const ready = [0, 1].map(() => new Promise((resolve) => {
        const worker = fork(process.argv[1], [process.argv[2], 'worker']);
        worker.on('message', (count) => {
            if (count === 0) resolve();
            left -= count;
            if (left === 0 && told) told();
        });
    }));
    await Promise.all(ready);
    const job = { identifier: 'bench', payload: { data: 'x'.repeat(138) } }; // 150 bytes as JSON
    process.stdout.write('ready\n');
    for await (const line of createInterface({ input: process.stdin })) {
        const end = new Promise((resolve) => { told = resolve; });
        left = Number(line);
        for (let i = left; i > 0; i -= EACH)
            await utils.addJobs(new Array(Math.min(i, EACH)).fill(job));
        await end;
        process.stdout.write('done\n');
    }
    process.exit(0);
}
