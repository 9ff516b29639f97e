// Reads numbers from standard input, a line each, lives so many jobs, and answers with a line.
// Jobs are inserted, fetched and completed 1,000 in each call; 100 took it longer.
import { createInterface } from 'node:readline';
import PgBoss from 'pg-boss';
import pg from 'pg';

const words = Object.fromEntries(process.argv[2].split(' ').map((word) => word.split('=')));
const where = { host: words.host, database: words.dbname, user: words.user };
const EACH = 1000;
const boss = new PgBoss({ ...where, max: 4, supervise: false, schedule: false });
boss.on('error', (e) => { throw e; });
await boss.start();
await boss.createQueue('bench');
const plain = new pg.Client(where);
await plain.connect();
const data = { data: 'x'.repeat(138) }; // 150 bytes as JSON

async function live(count) {
    for (let i = count; i > 0; i -= EACH) {
        await boss.insert(new Array(EACH).fill(0).map(() => ({ name: 'bench', data })));
        const jobs = await boss.fetch('bench', { batchSize: EACH });
        if (jobs.length !== EACH) throw new Error('there is not enough to fetch');
        await boss.complete('bench', jobs.map((job) => job.id));
    }
}

await live(1000);
await plain.query('ANALYZE'); // triples it
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
    await live(Number(line));
    process.stdout.write('done\n');
}
process.exit(0);
