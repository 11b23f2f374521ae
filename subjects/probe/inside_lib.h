int inside_work(int rounds);
