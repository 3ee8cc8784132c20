import multiprocessing


def work(number):
    return number * 3, __name__, multiprocessing.current_process().name


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2], 1)[0][:2])
