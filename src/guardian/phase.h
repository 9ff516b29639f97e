/* What a guardian is at, and what comes next. */
#ifndef GUARDIAN_PHASE_H
#define GUARDIAN_PHASE_H

enum phase {
	PHASE_TAKING = 1, /* asks for the subject */
	PHASE_LATCHING,   /* holds the subject; processes of a former holder may still run */
	PHASE_OFFERED,    /* nobody else runs; the patron has not said yet that it may begin */
	PHASE_WITHDRAWN,  /* the patron did not say so in time; nothing is held until it answers */
	PHASE_RUNNING,    /* the command runs */
	PHASE_LEFT,       /* the command has ended; what it left behind runs */
	PHASE_ENDING,     /* all that runs was asked to end */
	PHASE_KILLING,    /* all that runs is being killed */
	PHASE_KEEPING,    /* nothing runs any more; the subject is kept for a while */
	PHASE_DONE,
	PHASES
};

enum phase_event {
	EVENT_TAKEN = 1,     /* the subject is held */
	EVENT_LATCHED,       /* no process of a former holder runs */
	EVENT_GO,            /* the patron says that the command may begin */
	EVENT_BACK,          /* the patron knows that the offer was withdrawn */
	EVENT_PATRON_GONE,   /* the patron has died before it knew how the command ended */
	EVENT_COMMAND_ENDED, /* the command itself has */
	EVENT_EMPTY,         /* nothing that descends from the guardian lives */
	EVENT_LOST,          /* the subject is no longer held */
	EVENT_STOP,          /* somebody asked the guardian itself to end */
	EVENT_TIME_UP,       /* the phase has taken as long as it may */
	EVENTS
};

/* The phase after `event` in `phase`; 0: that cannot happen. */
enum phase phase_next(enum phase phase, enum phase_event event);

#endif
